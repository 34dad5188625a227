#include "engine/loss_rows.h"

#include <algorithm>

namespace shardplan::validator {

std::int64_t logit_rows(std::int64_t rows, std::int64_t padded_vocabulary, DType dtype) {
  const std::int64_t all = checked_mul(checked_mul(rows, padded_vocabulary), size_of(dtype));
  const std::int64_t chunks = ceil_div(all, kLogitBytes);
  return std::min(rows, round_up(ceil_div(rows, chunks), 128));
}

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
