#include "base/checked.h"
#include "program/tape/backward.h"
#include "program/tape/checkpoint.h"
#include "program/tape/forward.h"

namespace shardplan {
namespace {

/// The caller's frame holds the chained input until the segment returns.
void adopt_input(tape::Parts& p) {
  const ValueId value = p.view.chained_input();
  if (value == kNone) return;
  tape::ValueState& input = p.view.state(value);
  const std::int64_t bytes = round_up(p.view.bytes_of(value, input.dtype), kAllocationUnit);
  input.storage = p.storages.adopt(bytes, kChainedInputSlot, Category::activations);
}

/// What the host does around a checkpointed pass beside its operations. A function that enters
/// autograd again has no hooks on what is saved, and its first pass makes no graph: on a CPU a
/// block took it 0.02 and 0.22 ms more, where it took the other 0.5 and 1.1; as so many calls of
/// Python.
void call_checkpoint(tape::Parts& p) {
  constexpr std::int32_t kFirstCalls = 2, kSecondCalls = 24;
  const bool part = p.options.casts_given;  // of a tiled feed-forward, a function of its own
  const bool again = p.mode == TapeMode::redo;
  if (p.options.module_calls || part || (!again && p.mode != TapeMode::discard)) return;
  Kernel call =
      tape::call_kernel(again ? Issue::recompute : Issue::checkpoint, p.view.regime().compute);
  if (tape::reenters(p.options)) {
    call.issue = Issue::loop;
    call.calls = again ? kSecondCalls : kFirstCalls;
  }
  p.writer.launch(call);
}

}  // namespace

TapeRun run_tape(const Model& model, const Segment& segment, const Regime& regime,
                 const Sizes& sizes, DType input, TapeMode mode, const TapeOptions& options) {
  TapeRun run;
  tape::Parts parts(model, segment, regime, sizes, input, mode, options, run);
  adopt_input(parts);
  if (mode == TapeMode::discard) tape::CheckpointedInput(parts).save_part();
  if (mode == TapeMode::redo) tape::CheckpointedInput(parts).restore();
  call_checkpoint(parts);
  tape::ForwardPass(parts).run();
  if (parts.keeps()) tape::BackwardPass(parts).run();
  run.backward_tail = parts.offloading.leave_brought();
  run.hooked = parts.offloading.count();
  run.pinned = checked_add(parts.offloading.pinned_bytes(), parts.modules.pinned_bytes());
  for (const auto* kept : {&parts.saved.held(), &parts.saved.lent()})
    for (const tape::StorageId id : *kept)
      if (!parts.storages.of(id).exported) run.held.push_back(parts.storages.free_event(id));
  run.slots = parts.storages.slots();
  return run;
}

}  // namespace shardplan
