#include "program/math_attention.h"

#include <algorithm>
#include <vector>

#include "model/layers/attention.h"

namespace shardplan {
namespace {

/// Grouped keys that are repeated before the call (Op::mask) are grouped no more.
bool falls_back(const Graph& g, const Op& op) {
  return op.kind == OpKind::sdpa && op.mask.per == 0 && op.scores_bias == kNone &&
         g.value(op.in[1]).extent.per < g.value(op.in[0]).extent.per;
}

class Rewriter {
 public:
  explicit Rewriter(const Graph& from) : from_(from), ids_(from.values().size(), kNone) {}

  Graph run() {
    for (const Input& in : from_.inputs()) {
      const Extent extent = from_.value(in.value).extent;
      set(in.value, in.kind == InputKind::chained ? to_.chained_input(extent)
                                                  : to_.shared_input(in.shared, extent));
    }
    for (const Op& op : from_.ops()) {
      if (from_.value(op.out).logits) to_.begin_logits();
      set(op.out, falls_back(from_, op) ? math(op) : copy(op));
    }
    for (const Hold& hold : from_.holds()) to_.hold(id(hold.value), id(hold.until));
    if (from_.output() != kNone) to_.set_output(id(from_.output()));
    if (from_.lets_input_go()) to_.let_input_go();
    return std::move(to_);
  }

 private:
  ValueId id(ValueId old) const { return old == kNone ? kNone : ids_[static_cast<std::size_t>(old)]; }
  void set(ValueId old, ValueId now) { ids_[static_cast<std::size_t>(old)] = now; }

  ValueId copy(Op op) {
    const Extent out = from_.value(op.out).extent;
    for (ValueId& in : op.in) in = id(in);
    op.scores_bias = id(op.scores_bias);
    to_.set_autocast(op.autocast);
    const ValueId made = to_.op(op, out);
    to_.set_autocast(true);
    return made;
  }

  ValueId math(const Op& op) {
    const Extent q = from_.value(op.in[0]).extent, k = from_.value(op.in[1]).extent;
    const std::int64_t heads = op.side.per;
    const AttentionShape shape{.heads = heads,
                               .kv_heads = k.per / (q.per / heads),
                               .head_dim = q.per / heads,
                               .value_dim = from_.value(op.out).extent.per / heads,
                               .queries = q.scale,
                               .keys = k.scale};
    return math_attention(to_, shape, id(op.in[0]), id(op.in[1]), id(op.in[2]));
  }

  const Graph& from_;
  Graph to_;
  std::vector<ValueId> ids_;  ///< by the id in from_
};

}  // namespace

std::optional<Segment> without_fused_attention(const Segment& segment, const Regime& regime) {
  const auto& ops = segment.graph.ops();
  const bool any = std::any_of(ops.begin(), ops.end(),
                               [&](const Op& op) { return falls_back(segment.graph, op); });
  if (!any || regime.params != DType::f32 || regime.autocast()) return std::nullopt;
  return Segment{segment.name, segment.repeat, segment.checkpointable,
                 Rewriter(segment.graph).run()};
}

}  // namespace shardplan
