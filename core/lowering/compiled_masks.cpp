#include "lowering/compiled_masks.h"

#include <algorithm>
#include <array>

#include "lowering/gradient_uses.h"
#include "program/op_rules.h"

namespace shardplan {
namespace {

/// Blocks of a segment that are not checkpointed; `place`: of its first block, moved behind it.
std::int64_t kept_blocks(const SegmentRun& s, const ModelRun& run, bool checkpoints,
                         std::int64_t& place) {
  if (!checkpoints || !s.segment->checkpointable) return s.segment->repeat;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < s.segment->repeat; ++i, ++place)
    if (s.others && !run.own_tapes.has(place)) ++count;
  return count;
}

/// Bytes of the causal masks that layers keep which are graphs of their own: each is handed a
/// boolean one and makes one of it in the operands' type. Checkpoints keep the boolean one, as an
/// argument of their blocks.
std::int64_t masks_of_layers(const Model& model, const Plan& plan, const Regime& regime,
                             const ModelRun& run) {
  const Sizes sizes = sizes_of(plan, model);
  std::int64_t bytes = 0, place = 0, argument = 0;
  for (const SegmentRun& s : run.segments) {
    const std::int64_t kept = kept_blocks(s, run, plan.recomputes_blocks(), place);
    for (const Op& op : s.segment->graph.ops()) {
      if (op.kind != OpKind::sdpa || !op.causal) continue;
      const std::int64_t numel = elements({1, op.work.scale}, sizes);
      const auto of = [&](DType type) {
        return round_up(checked_mul(numel, size_of(type)), kAllocationUnit);
      };
      bytes = checked_add(bytes, checked_mul(kept, of(regime.compute)));
      if (kept < s.segment->repeat) argument = of(DType::b1);
    }
  }
  return checked_add(bytes, argument);
}

/// Checkpointed blocks whose attention is computed one operation at a time, in a compiled model.
std::int64_t blocks_with_zeros(const ModelRun& run) {
  std::int64_t place = 0, count = 0;
  for (const SegmentRun& s : run.segments) {
    const std::vector<Op>& ops = s.segment->graph.ops();
    const bool attends = std::any_of(ops.begin(), ops.end(), sees_all_tokens);
    for (std::int64_t i = 0; s.segment->checkpointable && i < s.segment->repeat; ++i, ++place)
      if (attends && (!s.others || run.own_tapes.has(place))) ++count;
  }
  return count;
}

}  // namespace

std::int64_t causal_mask_bytes(const Model& model, const Plan& plan, const Regime& regime,
                               const compiled::GraphCuts& cuts, const ModelRun& run) {
  // Where the graph breaks in every layer, each keeps one of its own; checkpoints keep the boolean
  // one that it is made from, as an argument of their blocks.
  const bool breaks = breaks_in_layers(model, plan);
  if (!plan.compiles_whole() || (breaks && !plan.recomputes_blocks())) return 0;
  const bool all_again = plan.recomputes_blocks() && !plan.keeps_some_blocks();
  if (model.facts.breaks_between_layers && !all_again)
    return masks_of_layers(model, plan, regime, run);
  std::array<std::int64_t, 2> bytes{};
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops())
      if (op.kind == OpKind::sdpa && op.causal)
        bytes[op.mask_from > 0 ? 1 : 0] =
            round_up(checked_mul(elements({1, op.work.scale}, sizes_of(plan, model)),
                                 size_of(breaks ? DType::b1 : regime.compute)),
                     kAllocationUnit);
  return bytes[0] * cuts.causal + bytes[1] * cuts.sliding;
}

std::int64_t safe_softmax_bytes(const Model& model, const Plan& plan, const Regime& regime,
                                const ModelRun& run) {
  if (!plan.compiles_whole() || !plan.recomputes_blocks()) return 0;
  const std::int64_t count = blocks_with_zeros(run);
  std::int64_t bytes = 0;
  for (const Segment& segment : model.segments)
    for (const Op& op : segment.graph.ops()) {
      if (count == 0 || !segment.checkpointable || !sees_all_tokens(op)) continue;
      const auto of = [&](std::int64_t per, DType type) {
        return round_up(
            checked_mul(elements({per, op.work.scale}, sizes_of(plan, model)), size_of(type)),
            kAllocationUnit);
      };
      bytes = of(1, regime.compute) + (count > 1 ? of(op.side.per, DType::f32) : 0);
    }
  return bytes;
}

}  // namespace shardplan
