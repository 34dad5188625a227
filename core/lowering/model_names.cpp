#include "lowering/model_names.h"

#include <algorithm>
#include <utility>

#include "frameworks/registry.h"
#include "lowering/segments.h"

namespace shardplan {
namespace {

bool frees_input(const TapeEvent& e) {
  return e.kind == TapeEvent::Kind::free && e.id == kChainedInputSlot;
}

/// What Dynamo calls has no names for what it does not read again.
void let_names_go(ModelRun& run) {
  for (SegmentRun& s : run.segments) {
    std::vector<TapeEvent>& names = s.forward.named_in_model;
    s.forward.forward.insert(s.forward.forward.end(), names.begin(), names.end());
    names.clear();
  }
}

}  // namespace

TapeRun without_input_freed(TapeRun tape) {
  std::erase_if(tape.forward, frees_input);
  return tape;
}

std::int64_t leaf_input_bytes(const Plan& plan, const ModelRun& run) {
  if (!plan.sends_inputs()) return 0;
  const TapeRun* before = nullptr;
  for (const SegmentRun& s : run.segments) {
    const bool block = s.segment->checkpointable;
    if (block && (before == nullptr || (s.others && !run.own_tapes.has(0)))) return 0;
    if (block) return before->output_needs_grad ? 0 : before->output_bytes;
    before = &s.forward;
  }
  return 0;
}

void keep_named_input(const Plan& plan, ModelRun& run) {
  if (plan.compile) return let_names_go(run);
  const bool refilled = plan.recomputes_blocks() &&
                        traits_of(plan).saved_input(plan).function != CheckpointFunction::torch;
  const bool named = run.segments.size() > 1 && run.segments[0].forward.names_output && !refilled &&
                     leaf_input_bytes(plan, run) == 0;
  if (!named || !run.segments[1].segment->checkpointable) return;
  SegmentRun& s = run.segments[1];
  const bool own = !s.others || run.own_tapes.has(0);
  LayerTapes first = s.first ? *s.first : own ? LayerTapes(s) : *s.others;
  if (std::ranges::none_of(first.forward.forward, frees_input)) return;
  first.forward = without_input_freed(std::move(first.forward));
  s.first = std::move(first);
  run.named_input = run.segments[0].forward.output_bytes;
}

void drop_names(ProgramBuilder& b, const ModelRun& run, const std::vector<SegmentRepeat>& repeats) {
  detail::drop_left(b, run, repeats, &TapeRun::named_in_model);
  if (run.named_input > 0 && !repeats.empty() && repeats.front().segment == 0)
    b.free_oldest(Category::activations, run.named_input, detail::kOutputName);
}

}  // namespace shardplan
