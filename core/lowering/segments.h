// The passes over a network that all frameworks share: each segment's tape, in the order of the
// forward and of the backward pass, with the framework's own actions hooked in.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"
#include "program/tape.h"

namespace shardplan {

struct SegmentRun {
  const Segment* segment = nullptr;
  TapeRun forward;   ///< kept, or discarded when the segment is checkpointed
  TapeRun backward;  ///< only `backward` is used: the recomputation is in it when checkpointed
  /// The first iteration, where its input needs no gradient and those of the others do; only the
  /// events are used.
  std::optional<TapeRun> first;
};

struct ModelRun {
  std::vector<SegmentRun> segments;
  std::vector<std::int64_t> shared_bytes;  ///< by Model::shared; 0 for a segment's own output
  std::vector<std::int64_t> shared_gradient_bytes;
  std::vector<bool> shared_kept;  ///< in the backward pass; the others go when forward returns
};

/// Runs all tapes of `model` under the plan's precision, batch and checkpointing.
ModelRun run_segments(const Model& model, const Plan& plan);

/// What the element types of a plan mean for the tapes.
Regime regime_of(const Plan& plan);
Sizes sizes_of(const Plan& plan);

/// The same iterations of a segment in a row.
struct Stretch {
  std::size_t segment = 0;
  std::int64_t count = 0;
};

/// One stretch a segment, in execution order.
std::vector<Stretch> whole_segments(const ModelRun& run);

/// Emits the forward pass. `hooks` may have any of: enter(builder, stretch index) before a stretch,
/// begin(builder) and end(builder) around each iteration, fetch(builder, module) and
/// release(builder, module) around a module's use of its parameters, and
/// gradient(builder, parameter, bytes) when a gradient appears.
template <typename Hooks>
void emit_forward(ProgramBuilder& b, const Model& model, const ModelRun& run,
                  const std::vector<Stretch>& stretches, Hooks& hooks);

/// Emits the backward pass. `stretches` are in its own order: last segment first.
template <typename Hooks>
void emit_backward(ProgramBuilder& b, const Model& model, const ModelRun& run,
                   const std::vector<Stretch>& stretches, Hooks& hooks);

namespace detail {

template <typename Hooks>
void emit_tape(ProgramBuilder& b, const std::vector<TapeEvent>& events, Hooks& hooks) {
  for (const TapeEvent& e : events) {
    switch (e.kind) {
      case TapeEvent::Kind::alloc:
        b.alloc(e.category, e.bytes);
        break;
      case TapeEvent::Kind::free:
        b.free(e.category, e.bytes);
        break;
      case TapeEvent::Kind::fetch:
        if constexpr (requires { hooks.fetch(b, e.id); }) hooks.fetch(b, e.id);
        break;
      case TapeEvent::Kind::release:
        if constexpr (requires { hooks.release(b, e.id); }) hooks.release(b, e.id);
        break;
      case TapeEvent::Kind::gradient:
        if constexpr (requires { hooks.gradient(b, e.id, e.bytes); })
          hooks.gradient(b, e.id, e.bytes);
        break;
    }
  }
}

template <typename Hooks>
void emit_iterations(ProgramBuilder& b, std::int64_t count, const std::vector<TapeEvent>& events,
                     const TapeCost& cost, Hooks& hooks) {
  if (count == 0) return;
  b.begin_repeat(count);
  if constexpr (requires { hooks.begin(b); }) hooks.begin(b);
  emit_tape(b, events, hooks);
  b.compute(cost.flops, cost.moved_bytes, cost.kernels);
  if constexpr (requires { hooks.end(b); }) hooks.end(b);
  b.end_repeat();
}

/// What a shared tensor takes: its own allocation, or its maker's output.
inline std::int64_t live_bytes(const Model& model, const ModelRun& run, std::size_t shared) {
  return model.shared[shared].is_output ? run.shared_gradient_bytes[shared]
                                        : run.shared_bytes[shared];
}

/// The last stretch of `segment` in `stretches` is at `index`.
inline bool ends_segment(const std::vector<Stretch>& stretches, std::size_t index) {
  return index + 1 == stretches.size() || stretches[index + 1].segment != stretches[index].segment;
}
inline bool starts_segment(const std::vector<Stretch>& stretches, std::size_t index) {
  return index == 0 || stretches[index - 1].segment != stretches[index].segment;
}

}  // namespace detail

template <typename Hooks>
void emit_forward(ProgramBuilder& b, const Model& model, const ModelRun& run,
                  const std::vector<Stretch>& stretches, Hooks& hooks) {
  std::int64_t autocast_cache = 0;
  for (std::size_t k = 0; k < stretches.size(); ++k) {
    const Stretch& stretch = stretches[k];
    if (stretch.count == 0) continue;
    const SegmentRun& s = run.segments[stretch.segment];
    if constexpr (requires { hooks.enter(b, k); }) hooks.enter(b, k);
    const bool first = s.first && detail::starts_segment(stretches, k);
    if (first) detail::emit_iterations(b, 1, s.first->forward, s.first->forward_cost, hooks);
    detail::emit_iterations(b, stretch.count - (first ? 1 : 0), s.forward.forward,
                            s.forward.forward_cost, hooks);
    autocast_cache += s.forward.autocast_cache * stretch.count;
    if (!detail::ends_segment(stretches, k)) continue;
    for (std::size_t i = 0; i < model.shared.size(); ++i)
      if (static_cast<std::size_t>(model.shared[i].maker) == stretch.segment)
        b.alloc(Category::activations, run.shared_bytes[i]);
  }
  b.free(Category::other, autocast_cache);  // autocast's cache goes when the forward leaves it
  for (std::size_t i = 0; i < model.shared.size(); ++i)
    if (!run.shared_kept[i]) b.free(Category::activations, detail::live_bytes(model, run, i));
}

template <typename Hooks>
void emit_backward(ProgramBuilder& b, const Model& model, const ModelRun& run,
                   const std::vector<Stretch>& stretches, Hooks& hooks) {
  if (!run.segments.empty() && run.segments.back().forward.output_bytes > 0)
    b.alloc(Category::activations, run.segments.back().forward.output_bytes);  // d(loss) = 1
  std::vector<bool> has_gradient(model.shared.size(), false);
  for (std::size_t k = 0; k < stretches.size(); ++k) {
    const Stretch& stretch = stretches[k];
    if (stretch.count == 0) continue;
    const SegmentRun& s = run.segments[stretch.segment];
    for (const Input& in : s.segment->graph.inputs()) {
      if (in.kind != InputKind::shared) continue;
      const auto i = static_cast<std::size_t>(in.shared);
      if (!model.shared[i].needs_grad || has_gradient[i]) continue;
      has_gradient[i] = true;  // accumulates over all users, then is the maker's output gradient
      b.alloc(Category::activations, run.shared_gradient_bytes[i]);
    }
    if constexpr (requires { hooks.enter(b, k); }) hooks.enter(b, k);
    const bool first = s.first && detail::ends_segment(stretches, k);
    detail::emit_iterations(b, stretch.count - (first ? 1 : 0), s.backward.backward,
                            s.backward.backward_cost, hooks);
    if (first) detail::emit_iterations(b, 1, s.first->backward, s.first->backward_cost, hooks);
    if (!detail::ends_segment(stretches, k)) continue;
    for (std::size_t i = 0; i < model.shared.size(); ++i) {
      if (static_cast<std::size_t>(model.shared[i].maker) != stretch.segment) continue;
      if (run.shared_kept[i]) b.free(Category::activations, detail::live_bytes(model, run, i));
    }
  }
  if (!run.segments.empty())  // the loss itself
    b.free(run.segments.back().segment->graph.ops().empty() ? Category::activations
                                                            : Category::logits_and_loss,
           run.segments.back().forward.output_bytes);
}

}  // namespace shardplan
