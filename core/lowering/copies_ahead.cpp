#include "lowering/copies_ahead.h"

#include <algorithm>

#include "base/checked.h"
#include "lowering/gradient_uses.h"
#include "model/tied_head.h"

namespace shardplan {
namespace {

/// Of what a block's recomputation and gradients need at once, over the block's own gradients.
/// Inductor goes breadth first at 1.2 and 2.1 (the histories below) and, in a replay of eight
/// layers of Llama 3.2 1B, at 3.4; in replays it does not at 6.3 and 8.2 (SmolLM2) and 9.1 (Llama).
constexpr std::int64_t kMostOverGradients = 4;

std::int64_t most_live(const TapeRun& tape) {
  std::int64_t live = 0, most = 0;
  for (const TapeEvent& e : tape.carried) live = checked_add(live, e.bytes);
  for (const TapeEvent& e : tape.backward) {
    if (e.kind == TapeEvent::Kind::alloc) live = checked_add(live, e.bytes);
    if (e.kind == TapeEvent::Kind::free) live -= e.bytes;
    most = std::max(most, live);
  }
  return most;
}

std::int64_t trained_weights(const Model& model, const Segment& block) {
  std::int64_t numel = 0;
  for (const Op& op : block.graph.ops()) {
    if (op.kind != OpKind::linear || op.weight == kNone) continue;
    const Parameter& weight = model.parameters[static_cast<std::size_t>(op.weight)];
    if (weight.trainable) numel = checked_add(numel, weight.numel);
  }
  return numel;
}

}  // namespace

// Inductor takes the order of its nodes that it expects the lowest peak of
// (torch/_inductor/memory.py, reorder_for_peak_memory). Where gradients are most of the memory, all
// orders peak behind the blocks, at the table of a tied head, and breadth first comes out a few MiB
// lower: copies of all blocks' weights are made first, and what they leave is too small for the
// gradients in fp32. Confirmed by allocator histories of SmolLM2 1.7B (3.6 GB) and Llama 3.2 1B
// (1.5 GB), and by replays; a head of its own, weights in 16 bits or no checkpoints are not.
std::int64_t copies_ahead_at_most(const Model& model, const Plan& plan, const ModelRun& run) {
  if (plan.workload.kind != WorkKind::train || !gradients_at_once(model, plan)) return 0;
  if (!plan.precision.autocast() || !plan.recomputes_blocks()) return 0;
  if (!has_tied_head(model)) return 0;
  std::int64_t bytes = 0;
  for (const SegmentRun& s : run.segments) {
    if (!s.segment->checkpointable) continue;
    const std::int64_t weights = trained_weights(model, *s.segment);
    const std::int64_t gradients = checked_mul(weights, size_of(DType::f32));
    if (most_live(s.backward) > checked_mul(kMostOverGradients, gradients)) continue;
    const std::int64_t copies = checked_mul(weights, size_of(DType::bf16));
    bytes = checked_add(bytes, checked_mul(copies, s.segment->repeat));
  }
  return bytes;
}

}  // namespace shardplan
