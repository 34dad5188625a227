// The passes over a network that all frameworks share: each segment's tape, in the order of the
// forward and of the backward pass, with the framework's own actions hooked in.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "lowering/model_names.h"
#include "lowering/saved_on_host.h"
#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"
#include "program/tape.h"

namespace shardplan {

/// The passes of one layer.
struct LayerTapes {
  TapeRun forward;   ///< kept, or discarded when the layer is checkpointed
  TapeRun backward;  ///< only `backward` is used: the recomputation is in it when checkpointed
};

struct SegmentRun : LayerTapes {
  const Segment* segment = nullptr;
  bool makes_along = false;  ///< its output is Shared::read_along
  /// Layers with other tapes than the rest: not checkpointed where that is, or in graphs that are
  /// cut elsewhere (compiled/cuts.h).
  std::optional<LayerTapes> others;
  /// Those of `others` whose neighbour in front has the segment's own tapes: what they are given is
  /// computed again, and they do not keep it. Where all others are such, all but the first.
  std::optional<LayerTapes> behind;
  /// Inputs of checkpointed blocks that hooks still send while the next blocks run.
  std::vector<TailedFree> sent_inputs;
  /// The first iteration, where its input needs no gradient and those of the others do, or is of
  /// another type than what they give one another; only the events are used.
  std::optional<LayerTapes> first;
};

struct ModelRun {
  std::vector<SegmentRun> segments;
  CheckpointedBlocks own_tapes;  ///< which blocks are none of SegmentRun::others
  // What all tapes allocate and start: the first rows of the tables of every program of this run.
  std::vector<Event> blocks;
  std::vector<Kernel> kernels;
  std::vector<std::int64_t> shared_bytes;  ///< by Model::shared; 0 for a segment's own output
  std::vector<std::int64_t> shared_gradient_bytes;
  std::vector<bool> shared_kept;       ///< in the backward pass; the others go in the forward pass
  std::vector<bool> shared_trains;     ///< by Model::shared: it has a gradient
  std::vector<std::size_t> last_user;  ///< by Model::shared: the segment
  /// By Model::shared, the segment whose backward pass is the last one to need it: its first
  /// reader; of a segment's output the segment itself.
  std::vector<std::size_t> lets_go;
  /// Shared tensors that are made once and kept: each pipeline stage has its own, and some
  /// frameworks cache their tables. They are in none of the lists above.
  std::int64_t resident_shared = 0;
  std::int64_t buffers = 0;  ///< ModelFacts::buffer_bytes: resident with the parameters
  /// Alive from the begin of the forward pass until the backward pass reaches the blocks
  /// (FrameworkTraits::held_inputs).
  std::int64_t held_inputs = 0;
  /// Alive from the begin of the forward pass until the end of the backward pass.
  std::int64_t held_throughout = 0;
  Stream pool = Stream::compute;  ///< of that, and of what compiled passes allocate
  /// What the embeddings return, where nothing but the name that the model's forward has for it
  /// holds it behind the first block: it goes when that returns.
  std::int64_t named_input = 0;
  /// What eager embeddings hand to recorded graphs, which hold it until the next step's is there.
  std::int64_t held_over = 0;
  std::vector<Event> trials;  ///< of the compiler, before the first step
  bool ends_apart = false;    ///< the head's graph is compiled when it is met, trials with it
  std::int64_t brought = 0;  ///< images or sounds of a batch: the loop holds them between steps too
};

/// Runs all tapes of `model` under the plan's precision, batch and checkpointing; for inference
/// those of the pass over the prompt.
ModelRun run_segments(const Model& model, const Plan& plan);

/// Its first backward pass makes autograd's workspace (FrameworkTraits::makes_workspace_late).
bool makes_workspace_late(const ModelRun& run);

/// FLOPs of one step of `plan` without recomputation.
double model_flops(const ModelRun& run, const Plan& plan);

/// Fills the tables of `run` from the tapes of its segments.
void fill_tables(ModelRun& run);

/// A program without events that knows the blocks and kernels of `run`.
Program program_of(const ModelRun& run);

/// What the element types of a plan mean for the tapes.
Regime regime_of(const Plan& plan);
/// Of the text alone.
Sizes sizes_of(const Plan& plan);
Sizes sizes_of(const Plan& plan, const Model& model);

/// The same iterations of a segment in a row.
struct SegmentRepeat {
  std::size_t segment = 0;
  std::int64_t count = 0;
  bool begins = true;  ///< with the segment's first iteration; false: a stage before has it
};

/// One repeat a segment, in execution order.
std::vector<SegmentRepeat> whole_segments(const ModelRun& run);

/// For who has nothing to do beside a pass.
struct NoHooks {};

/// Emits the forward pass. `hooks` may have any of: enter(builder, repeat index) before a repeat,
/// enter_first(builder, tape) before layers of another kind than those before them in the backward
/// pass: a first layer (SegmentRun::first), the next of a segment's stretches; begin(builder) and
/// end(builder) around each iteration, fetch(builder, module) and release(builder, module) around a
/// module's use of its parameters, gradient(builder, parameter, bytes) when a gradient appears, and
/// added(builder, parameter, bytes) when the parameter takes it;
/// summed(...), where that is a sum in a tensor of its own.
template <typename Hooks>
void emit_forward(ProgramBuilder& b, const Model& model, const ModelRun& run,
                  const std::vector<SegmentRepeat>& repeats, Hooks& hooks);

/// Emits the backward pass. `repeats` are in its own order: last segment first. `has_result`: the
/// last one's output, such as the loss, is still there and goes at the end.
template <typename Hooks>
void emit_backward(ProgramBuilder& b, const Model& model, const ModelRun& run,
                   const std::vector<SegmentRepeat>& repeats, Hooks& hooks, bool has_result = true);

namespace detail {

// Names of blocks: the chain of outputs, the chain of their gradients, and for every segment one
// name a slot.
inline constexpr std::int32_t kOutputName = 0;
inline constexpr std::int32_t kGradientName = 1;
inline constexpr std::int32_t kAlongName = 2;     ///< the gradient of Shared::read_along
inline constexpr std::int32_t kHeldOverName = 3;  ///< ModelRun::held_over
inline constexpr std::int32_t kGivenName = 4;     ///< the graphs' copy of that
inline constexpr std::int32_t kReceivedName = 5;  ///< a stage's input that outlives its passes
inline constexpr std::int32_t kAwaitedName = 6;   ///< the gradient of its output that does
inline constexpr std::int32_t kFirstSlotName = 7;

std::int32_t slots_of(const std::optional<LayerTapes>& layers);
std::int32_t slot_base(const ModelRun& run, std::size_t segment);
/// Names of a segment's own tapes; those of its other layers come after them. Both kinds leave
/// blocks behind, and a name's newest block has to be of the kind that frees it.
std::int32_t shared_slots(const SegmentRun& s);

/// One pass of a tape: its events, the exchanges that they number, and where the tables have its
/// blocks and kernels.
struct TapePass {
  const std::vector<TapeEvent>& events;
  const std::vector<TapeExchange>& exchanges;
  TapeRows rows;
  std::int64_t kernels = 0;
  const std::vector<TailedFree>& tail;  ///< what it leaves to the pass behind it
  std::int64_t hooked = 0;              ///< TapeRun::hooked, of a forward pass
  std::span<const TapeEvent> carried;   ///< TapeRun::carried
};
inline TapePass forward_of(const TapeRun& tape) {
  return {tape.forward,      tape.exchanges,
          tape.forward_rows, static_cast<std::int64_t>(tape.forward_kernels.size()),
          tape.forward_tail, tape.hooked};
}
inline TapePass backward_of(const TapeRun& tape) {
  return {tape.backward,      tape.exchanges,
          tape.backward_rows, static_cast<std::int64_t>(tape.backward_kernels.size()),
          tape.backward_tail, 0,
          tape.carried};
}

/// Whether kernels keep their places between the hooks' actions, because these send or fetch
/// something; else an iteration's are one event.
template <typename Hooks>
constexpr bool orders_kernels() {
  if constexpr (requires { Hooks::kOrdersKernels; }) return Hooks::kOrdersKernels;
  return false;
}

/// What replayed graphs were given in the step before goes when this step's is there (an
/// allocator's history of Llama 3.2 1B with adapters and checkpoints). From their recording on
/// graphs read a copy, which needs one block more than the first step has made in their pool.
void renew_held_over(ProgramBuilder& b, std::int64_t bytes);
void drop_given(ProgramBuilder& b, std::int64_t bytes);

/// In the second step the allocator's cache is emptied before a graph is recorded
/// (torch/cuda/graphs.py, graph.__enter__).
void begin_recording(ProgramBuilder& b, const ModelRun& run);

/// Emits the collective that an exchange of a tape is.
void emit_exchange(ProgramBuilder& b, const TapeExchange& exchange);
/// The hook for a module's or a gradient's event, if there is one; `before` it, blocks go out.
template <typename Hooks, typename Before>
void call_hook(ProgramBuilder& b, const TapeEvent& e, Hooks& hooks, Before&& before) {
  const auto call = [&](auto&& hook) {
    before();
    hook();
  };
  if constexpr (requires { hooks.fetch(b, e.id); })
    if (e.kind == TapeEvent::Kind::fetch) call([&] { hooks.fetch(b, e.id); });
  if constexpr (requires { hooks.release(b, e.id); })
    if (e.kind == TapeEvent::Kind::release) call([&] { hooks.release(b, e.id); });
  if constexpr (requires { hooks.gradient(b, e.id, e.bytes); })
    if (e.kind == TapeEvent::Kind::gradient) call([&] { hooks.gradient(b, e.id, e.bytes); });
  if constexpr (requires { hooks.added(b, e.id, e.bytes); })
    if (e.kind == TapeEvent::Kind::added) call([&] { hooks.added(b, e.id, e.bytes); });
  if constexpr (requires { hooks.summed(b, e.id, e.bytes); })
    if (e.kind == TapeEvent::Kind::summed) call([&] { hooks.summed(b, e.id, e.bytes); });
}

/// What comes or goes beside a pass's own blocks; `before` it, these go out.
template <typename Before, typename Ends>
void emit_aside(ProgramBuilder& b, const TapeEvent& e, std::vector<TailedFree>& pending,
                Before&& before, const Ends& ends) {
  before();
  const bool ended =
      e.kind == TapeEvent::Kind::autocast_ends || e.kind == TapeEvent::Kind::model_returns;
  if (ended) return ends(e.kind);
  if (e.kind == TapeEvent::Kind::drain) return drain(b, pending, e.id);
  if (e.kind == TapeEvent::Kind::timed) return b.times_kernel(e.id, e.bytes);
  b.makes_workspace(e.bytes);
}

/// `pending`: what passes before it have left, and then what it leaves. `ends`: autocast or the
/// model's forward has ended.
template <typename Hooks, typename Ends>
void emit_tape(ProgramBuilder& b, const TapePass& pass, Hooks& hooks,
               std::vector<TailedFree>& pending, const Ends& ends) {
  std::int32_t next = pass.rows.block, first = next;  // blocks before the framework's next action
  const auto emit_blocks = [&] {
    b.blocks(first, next - first);
    first = next;
  };
  std::int64_t emitted = 0, reached = 0;  // kernels, where only exchanges stand between them
  const auto catch_up = [&] {
    if constexpr (orders_kernels<Hooks>()) return;
    b.compute(pass.rows.kernel + static_cast<std::int32_t>(emitted), reached - emitted);
    emitted = reached;
  };
  const auto stand_here = [&] { emit_blocks(), catch_up(); };
  for (const TapeEvent& e : pass.events) {
    switch (e.kind) {
      case TapeEvent::Kind::alloc:
      case TapeEvent::Kind::free:
        if (e.bytes != 0) ++next;
        break;
      case TapeEvent::Kind::fetch:
      case TapeEvent::Kind::release:
      case TapeEvent::Kind::gradient:
      case TapeEvent::Kind::added:
      case TapeEvent::Kind::summed:
        call_hook(b, e, hooks, emit_blocks);
        break;
      case TapeEvent::Kind::compute:
        if constexpr (orders_kernels<Hooks>()) {
          emit_blocks();
          b.compute(pass.rows.kernel + e.id, e.bytes);
        }
        reached = e.id + e.bytes;
        break;
      case TapeEvent::Kind::exchange:
        stand_here();
        emit_exchange(b, pass.exchanges[static_cast<std::size_t>(e.id)]);
        break;
      case TapeEvent::Kind::wait:
        catch_up();
        b.wait(Stream::communication);
        break;
      case TapeEvent::Kind::to_host:
      case TapeEvent::Kind::to_gpu:
      case TapeEvent::Kind::wait_for_copies:
      case TapeEvent::Kind::copies_follow:
      case TapeEvent::Kind::host_waits:
        stand_here();
        emit_copy(b, e);
        break;
      default:
        emit_aside(b, e, pending, emit_blocks, ends);
        break;
    }
  }
  emit_blocks();
  reached = pass.kernels;
  catch_up();
  leave(pending, pass.tail, pass.hooked);
}

/// Blocks in a row that run the same tapes.
struct Stretch {
  const LayerTapes* tapes = nullptr;
  std::int64_t count = 0;
};
/// Blocks `first` to `first + count` - 1 of those that a GPU runs, in execution order. Segments
/// without other layers are one stretch.
std::vector<Stretch> stretches(const ModelRun& run, const SegmentRun& s, std::int64_t first,
                               std::int64_t count);
/// The blocks of all of them; other segments are none.
std::int64_t block_count(const ModelRun& run, const std::vector<SegmentRepeat>& repeats);
/// The same of one.
std::int64_t block_count(const ModelRun& run, const SegmentRepeat& repeat);

inline constexpr auto kNothing = [] {};
inline constexpr auto kEndsNothing = [](TapeEvent::Kind) {};

/// The first iteration finds what others have left, the next ones, which are emitted behind
/// `again`, what it leaves itself.
template <typename Hooks, typename Again = decltype(kNothing),
          typename Ends = decltype(kEndsNothing)>
void emit_iterations(ProgramBuilder& b, std::int64_t count, const TapePass& pass, Hooks& hooks,
                     std::vector<TailedFree>& pending, const Again& again = kNothing,
                     const Ends& ends = kEndsNothing) {
  const auto emit = [&](std::int64_t times) {
    if (times == 0) return;
    b.begin_repeat(times);
    if constexpr (requires { hooks.begin(b); }) hooks.begin(b);
    emit_tape(b, pass, hooks, pending, ends);
    if constexpr (requires { hooks.end(b); }) hooks.end(b);
    b.end_repeat();
  };
  if (count == 0) return;
  for (const TapeEvent& e : pass.carried) b.alloc(e.category, e.bytes, e.pool);
  const bool apart = !pending.empty() || !pass.tail.empty();
  if (apart) emit(1);
  if (apart && count > 1) again();
  emit(apart ? count - 1 : count);
  for (const TapeEvent& e : pass.carried) b.free(e.category, e.bytes, e.pool);
}

/// Frees what `count` runs of a segment have left.
inline void drop_left(ProgramBuilder& b, const std::vector<TapeEvent>& left, std::int32_t base,
                      std::int64_t count) {
  if (left.empty() || count == 0) return;
  b.begin_repeat(count);
  for (const TapeEvent& e : left) b.free_named(e.category, e.bytes, base + e.id);
  b.end_repeat();
}
inline void drop_left(ProgramBuilder& b, const TapeRun& tape, std::int32_t base,
                      std::int64_t count) {
  drop_left(b, tape.until_autocast_ends, base, count);
  drop_left(b, tape.until_forward_ends, base, count);
}

/// What all segments have left until something ends.
using LeftUntil = std::vector<TapeEvent> TapeRun::*;
void drop_left(ProgramBuilder& b, const ModelRun& run, const std::vector<SegmentRepeat>& repeats,
               LeftUntil until);

/// The graph goes, and with it what its nodes referred to. `repeats`: those of a backward pass.
void drop_held(ProgramBuilder& b, const ModelRun& run, const std::vector<SegmentRepeat>& repeats);

/// What a shared tensor takes: its own allocation, or its maker's output.
inline std::int64_t live_bytes(const Model& model, const ModelRun& run, std::size_t shared) {
  return model.shared[shared].is_output ? run.shared_gradient_bytes[shared]
                                        : run.shared_bytes[shared];
}

/// Recorded graphs make the others in their own pool.
inline Stream pool_of(const Model& model, const ModelRun& run, std::size_t shared) {
  return model.shared[shared].is_output ? Stream::compute : run.pool;
}

/// Whether the model's result has a shared tensor until the forward pass ends.
inline bool held_by_result(const Model& model, std::size_t shared) {
  return model.shared[shared].is_output && !model.shared[shared].passes_on;
}

/// The last repeat of `segment` in `repeats` is at `index`.
inline bool ends_segment(const std::vector<SegmentRepeat>& repeats, std::size_t index) {
  return index + 1 == repeats.size() || repeats[index + 1].segment != repeats[index].segment;
}
inline bool starts_segment(const std::vector<SegmentRepeat>& repeats, std::size_t index) {
  return index == 0 || repeats[index - 1].segment != repeats[index].segment;
}

/// How many of the iterations have the tapes of SegmentRun::first; `begins`: the first is here.
inline std::int64_t firsts(const SegmentRun& s, bool begins) {
  return s.first && begins ? 1 : 0;
}

}  // namespace detail

template <typename Hooks>
void emit_forward(ProgramBuilder& b, const Model& model, const ModelRun& run,
                  const std::vector<SegmentRepeat>& repeats, Hooks& hooks) {
  b.alloc(Category::activations, run.held_inputs);
  b.alloc(Category::activations, run.held_throughout, run.pool);
  detail::renew_held_over(b, run.held_over);
  std::vector<TailedFree> pending;
  std::int64_t block = 0;
  bool casts = true, runs = true;  // autocast goes on, and the model's forward
  const auto end = [&](TapeEvent::Kind what) {
    if (what == TapeEvent::Kind::autocast_ends && std::exchange(casts, false))
      detail::drop_left(b, run, repeats, &TapeRun::until_autocast_ends);
    if (what == TapeEvent::Kind::model_returns && std::exchange(runs, false))
      drop_names(b, run, repeats);
  };
  for (std::size_t k = 0; k < repeats.size(); ++k) {
    const SegmentRepeat& repeat = repeats[k];
    if (repeat.count == 0) continue;
    const SegmentRun& s = run.segments[repeat.segment];
    if constexpr (requires { hooks.enter(b, k); }) hooks.enter(b, k);
    detail::begin_recording(b, run);
    const auto emit = [&](const TapeRun& tape, std::int64_t count) {
      detail::emit_iterations(b, count, detail::forward_of(tape), hooks, pending, detail::kNothing,
                              end);
    };
    for (const TailedFree& input : s.sent_inputs) b.alloc(input.event.category, input.event.bytes);
    const auto first = detail::firsts(s, repeat.begins && detail::starts_segment(repeats, k));
    if (first > 0) emit(s.first->forward, 1);
    for (const detail::Stretch& layers :
         detail::stretches(run, s, block + first, repeat.count - first))
      emit(layers.tapes->forward, layers.count);
    detail::leave(pending, s.sent_inputs, 0);
    if (!s.segment->graph.beside().empty()) detail::drain(b, pending, 0);
    block += detail::block_count(run, repeat);
    if (!detail::ends_segment(repeats, k)) continue;
    for (std::size_t i = 0; i < model.shared.size(); ++i) {
      const std::int64_t bytes = detail::live_bytes(model, run, i);
      if (static_cast<std::size_t>(model.shared[i].maker) == repeat.segment) {
        // A segment's output leaves the chain: from here on it is a block like the others.
        if (model.shared[i].is_output)
          b.free_named(Category::activations, bytes, detail::kOutputName);
        b.alloc(Category::activations, bytes, detail::pool_of(model, run, i));
      }
      // A mask, say, goes with the frame of the function that made it.
      if (run.last_user[i] == repeat.segment && !run.shared_kept[i] &&
          !detail::held_by_result(model, i))
        b.free(Category::activations, bytes, detail::pool_of(model, run, i));
    }
  }
  detail::drain(b, pending, 0);
  end(TapeEvent::Kind::model_returns);
  end(TapeEvent::Kind::autocast_ends);
  detail::drop_left(b, run, repeats, &TapeRun::until_forward_ends);
  for (std::size_t i = 0; i < model.shared.size(); ++i)
    if (!run.shared_kept[i] && detail::held_by_result(model, i))
      b.free(Category::activations, detail::live_bytes(model, run, i));
}

template <typename Hooks>
void emit_backward(ProgramBuilder& b, const Model& model, const ModelRun& run,
                   const std::vector<SegmentRepeat>& repeats, Hooks& hooks, bool has_result) {
  const SegmentRun* last = repeats.empty() ? nullptr : &run.segments[repeats.front().segment];
  // d(loss) = 1, or what the next stage has sent; of what has no graph it is dropped.
  if (last != nullptr && !last->backward.backward.empty())
    b.alloc_named(Category::activations, last->forward.output_bytes, detail::kGradientName);
  std::vector<bool> has_gradient(model.shared.size(), false);
  std::int64_t held = run.held_inputs;
  std::vector<TailedFree> pending;
  std::int64_t block = detail::block_count(run, repeats);
  for (std::size_t k = 0; k < repeats.size(); ++k) {
    const SegmentRepeat& repeat = repeats[k];
    if (repeat.count == 0) continue;
    const SegmentRun& s = run.segments[repeat.segment];
    if (s.segment->checkpointable) b.free(Category::activations, std::exchange(held, 0));
    for (const Input& in : s.segment->graph.inputs()) {
      if (in.kind != InputKind::shared) continue;
      const auto i = static_cast<std::size_t>(in.shared);
      if (!run.shared_trains[i] || has_gradient[i]) continue;
      has_gradient[i] = true;  // accumulates over all users, then is the maker's output gradient
      b.alloc_named(Category::activations, run.shared_gradient_bytes[i],
                    model.shared[i].read_along ? detail::kAlongName : detail::kGradientName);
    }
    if constexpr (requires { hooks.enter(b, k); }) hooks.enter(b, k);
    detail::begin_recording(b, run);
    const auto enter_first = [&](const TapeRun& tape) {
      if constexpr (requires { hooks.enter_first(b, tape); }) hooks.enter_first(b, tape);
    };
    const auto emit = [&](const TapeRun& tape, std::int64_t count) {
      detail::emit_iterations(b, count, detail::backward_of(tape), hooks, pending,
                              [&] { enter_first(tape); });
    };
    const auto first = detail::firsts(s, repeat.begins && detail::ends_segment(repeats, k));
    block -= detail::block_count(run, repeat);
    const auto layers = detail::stretches(run, s, block + first, repeat.count - first);
    for (auto stretch = layers.rbegin(); stretch != layers.rend(); ++stretch) {
      if (stretch != layers.rbegin()) enter_first(stretch->tapes->backward);
      emit(stretch->tapes->backward, stretch->count);
    }
    if (first > 0) enter_first(s.first->backward);
    if (first > 0) emit(s.first->backward, 1);
    if (!detail::ends_segment(repeats, k)) continue;
    for (std::size_t i = 0; i < model.shared.size(); ++i)
      if (run.shared_kept[i] && run.lets_go[i] == repeat.segment)
        b.free(Category::activations, detail::live_bytes(model, run, i),
               detail::pool_of(model, run, i));
  }
  detail::drain(b, pending, 0);
  b.free(Category::activations, held);
  b.free(Category::activations, run.held_throughout, run.pool);
  detail::drop_given(b, run.held_over);
  detail::drop_held(b, run, repeats);
  if (last != nullptr && has_result) {
    const Graph& graph = last->segment->graph;
    const bool loss = graph.output() != kNone && graph.value(graph.output()).logits;
    b.free_named(loss ? Category::logits_and_loss : Category::activations,
                 last->forward.output_bytes, detail::kOutputName);
  }
}

}  // namespace shardplan
