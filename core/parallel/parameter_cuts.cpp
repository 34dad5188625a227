#include "parallel/parameter_cuts.h"

#include "base/checked.h"

namespace shardplan {

std::optional<std::int64_t> share_of(std::int64_t n, Part part) {
  if (part.whole()) return n;
  const std::int64_t shares = checked_mul(n, part.num);
  if (shares % part.den != 0) return std::nullopt;
  return shares / part.den;
}

void ParameterCuts::cut_weight(const Model& model, const Graph& graph, const Op& op, bool rows,
                               Part part) {
  const auto& shape = model.parameters[static_cast<std::size_t>(op.weight)].shape;
  const std::int64_t in = op.in[0] == kNone ? 1 : graph.value(op.in[0]).extent.per;
  const std::int64_t out = graph.value(op.out).extent.per;
  const bool turned = op.kind == OpKind::linear && op.in[0] != kNone &&
                      checked_mul(shape[0], in) != checked_mul(shape[1], out);
  cut(op.weight, rows != turned ? std::size_t{1} : std::size_t{0}, part);
}

}  // namespace shardplan
