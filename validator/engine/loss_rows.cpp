#include "engine/loss_rows.h"

namespace shardplan::validator {

LossRows::LossRows(Arena& arena, const TensorRanks& ranks, const DecoderSpec& spec, DType dtype,
                   std::int64_t most_rows)
    : ranks_(ranks), spec_(spec) {
  if (!ranks.divided()) return;
  parts_ = arena.allocate("loss_parts", Category::logits_and_loss, statistic_type(dtype),
                          {spec.share.ranks * most_rows, LossParts::kNumbers});
}

void LossRows::compute(const CrossEntropy& rows) const {
  Backend& device = ranks_.device();
  CrossEntropy o = rows;
  o.vocabulary = spec_.tokens_here();
  if (!ranks_.divided()) return device.cross_entropy(o);
  const std::int64_t count = rows.logits.rows();
  const Tensor all = parts_.row_range(0, spec_.share.ranks * count);
  const LossParts columns{.parts = all.row_range(spec_.share.rank * count, count),
                          .logits = o.logits,
                          .targets = o.targets,
                          .first = spec_.first_token(),
                          .vocabulary = o.vocabulary};
  device.loss_parts(columns);
  ranks_.gather_in_place(all);
  device.joined_cross_entropy({.loss = o, .all = all, .first = columns.first});
}

}  // namespace shardplan::validator
