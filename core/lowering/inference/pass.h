// One forward pass of generation: the prompt, or a token of each sequence, over a KV cache.
#pragma once

#include <cstdint>

#include "lowering/segments.h"

namespace shardplan {

/// What a pass takes of each sequence.
struct Pass {
  std::int64_t tokens = 1;
  std::int64_t past = 0;  ///< tokens that earlier passes took
};

/// Tokens that a layer attends to: a sliding one (`window` > 0) has kept the last window - 1 and
/// gets this pass's own. This is what its cache holds afterwards.
std::int64_t context_of(const Pass& pass, std::int64_t window);

/// Of a sliding layer's segment; 0: it attends to everything.
std::int64_t window_of(const Segment& segment);

/// Runs all tapes of `pass` without autograd; `before` is the pass that left the cache, null for
/// the first one. Only the forward tapes of the result are filled.
ModelRun run_pass(const Model& model, const Plan& plan, const Pass& pass, const Pass* before);

/// Emits a pass into a program that has the tables of `run` (program_of). The logits of the last
/// position stay, as the chained output. Hooks as for emit_forward.
template <typename Hooks>
void emit_pass(ProgramBuilder& b, const Model& model, const ModelRun& run,
               const std::vector<SegmentRepeat>& repeats, Hooks& hooks) {
  std::vector<TailedFree> none;  // nothing is saved, and so nothing sent
  std::int64_t held = 0;         // the embeddings, for which the model's forward has a name
  bool runs = true;
  const auto model_returns = [&] {  // to the head's forward, or a stage's without one to its caller
    if (!std::exchange(runs, false)) return;
    b.free_older(Category::activations, held, detail::kOutputName);
    detail::drop_left(b, run, repeats, &TapeRun::named_in_model);
  };
  for (std::size_t k = 0; k < repeats.size(); ++k) {
    const std::size_t segment = repeats[k].segment;
    const SegmentRun& s = run.segments[segment];
    if (segment + 1 == run.segments.size()) model_returns();
    if constexpr (requires { hooks.enter(b, k); }) hooks.enter(b, k);
    const auto emit = [&](const TapeRun& tape, std::int64_t count) {
      detail::emit_iterations(b, count, detail::forward_of(tape), hooks, none);
    };
    const bool first = s.first && repeats[k].begins && detail::starts_segment(repeats, k);
    if (first) {
      emit(s.first->forward, 1);
      held = run.segments[segment - 1].forward.output_bytes;
    }
    emit(s.forward, repeats[k].count - (first ? 1 : 0));
    if (!detail::ends_segment(repeats, k)) continue;
    for (std::size_t i = 0; i < model.shared.size(); ++i) {
      if (static_cast<std::size_t>(model.shared[i].maker) == segment)
        b.alloc(Category::activations, run.shared_bytes[i]);
      if (run.last_user[i] == segment) b.free(Category::activations, run.shared_bytes[i]);
    }
  }
  model_returns();
  for (std::size_t k = 0; k < run.segments.size(); ++k)
    detail::drop_left(b, run.segments[k].forward, detail::slot_base(run, k),
                      run.segments[k].segment->repeat);
}

/// The same, segment by segment.
template <typename Hooks>
void emit_pass(ProgramBuilder& b, const Model& model, const ModelRun& run, Hooks& hooks) {
  emit_pass(b, model, run, whole_segments(run), hooks);
}

}  // namespace shardplan
