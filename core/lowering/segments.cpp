#include "lowering/segments.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "frameworks/registry.h"
#include "lowering/compiled_masks.h"
#include "lowering/gradient_flow.h"
#include "lowering/gradient_uses.h"
#include "lowering/inference/pass.h"
#include "lowering/model_names.h"
#include "lowering/segment_run.h"
#include "program/compiled/breaks.h"
#include "program/compiled/cuts.h"
#include "program/op_rules.h"
#include "trainers/description.h"

namespace shardplan {

Regime regime_of(const Plan& plan) {
  Regime regime = traits_of(plan).regime(plan);
  regime.wrapped = plan.autocasts_forward();
  regime.divides_loss = plan.trainer->divides_loss;
  return regime;
}

Sizes sizes_of(const Plan& plan) {
  const Workload& w = plan.workload;
  const std::int64_t pieces = plan.parallel.sequence * plan.parallel.context;
  Sizes sizes{w.micro_batch, w.sequence_length / pieces,
              (w.target_length > 0 ? w.target_length : w.sequence_length) / pieces};
  if (pieces == 1) sizes.unscored = w.unscored;  // else some rank has no tokens of the prompt
  return sizes;
}

Sizes sizes_of(const Plan& plan, const Model& model) {
  Sizes sizes = sizes_of(plan);
  const ImageFacts& image = model.facts.image;
  if (image.patches == 0) return sizes;
  sizes.images =
      checked_mul(sizes.batch, checked_mul(plan.workload.images.per_sample, image.pieces));
  sizes.patches = image.patches;
  return sizes;
}

namespace {

/// Shared tensors that something holds on to between the passes: autograd, or a checkpoint, which
/// keeps the arguments of its block.
std::vector<bool> kept_in_backward(const Model& model, const Plan& plan, const ModelRun& run) {
  std::vector<bool> kept(model.shared.size(), false);
  for (const SegmentRun& s : run.segments) {
    for (const std::int32_t i : s.forward.saved_shared) kept[static_cast<std::size_t>(i)] = true;
    if (s.others)
      for (const std::int32_t i : s.others->forward.saved_shared)
        kept[static_cast<std::size_t>(i)] = true;
    if (!plan.recomputes_blocks() || !s.segment->checkpointable) continue;
    for (const Input& in : s.segment->graph.inputs())
      if (in.kind == InputKind::shared) kept[static_cast<std::size_t>(in.shared)] = true;
  }
  return kept;
}

/// How one pass over a segment names its slots.
struct TapeNames {
  std::int32_t base = detail::kFirstSlotName;
  std::int32_t incoming = kChainedInputSlot;  ///< what the neighbour left
  std::int32_t outgoing = kNoSlot;            ///< what the next neighbour will free
  std::int32_t chain = detail::kOutputName;   ///< the name of both
  std::int32_t left = chain;                  ///< that of what the neighbour left, where another
};

/// Blocks of a tape that something else frees than the tape's own passes.
std::vector<std::int32_t> outliving_slots(const TapeRun& forward, const TapeRun& backward) {
  std::vector<std::int32_t> slots;
  for (const TapeEvent& e : forward.held) slots.push_back(e.id);
  for (const TailedFree& left : forward.forward_tail) slots.push_back(left.event.id);
  for (const TailedFree& left : backward.backward_tail) slots.push_back(left.event.id);
  return slots;
}

/// Whether a recomputation has what is in `slot` from the forward pass: a result that selective
/// checkpointing kept.
bool takes_over(const TapeRun& again, std::int32_t slot) {
  return std::ranges::none_of(again.backward, [&](const TapeEvent& e) {
    return e.kind == TapeEvent::Kind::alloc && e.id == slot;
  });
}

/// Appends what one pass allocates, frees and starts to the tables of `run`.
TapeRows append_rows(ModelRun& run, const std::vector<TapeEvent>& events,
                     const std::vector<Kernel>& kernels, const TapeNames& names,
                     const std::vector<std::int32_t>& outlive) {
  const TapeRows rows{static_cast<std::int32_t>(run.blocks.size()),
                      static_cast<std::int32_t>(run.kernels.size())};
  run.kernels.insert(run.kernels.end(), kernels.begin(), kernels.end());
  const auto name_of_slot = [&](std::int32_t slot) {
    const bool outlives = std::ranges::find(outlive, slot) != outlive.end();
    if (slot == kCacheSlot || slot == kCarriedSlot || outlives) return kUnnamed;
    if (slot == names.incoming) return names.left;
    if (slot == names.outgoing) return names.chain;
    if (slot == kChainedInputSlot) return detail::kOutputName;
    return names.base + slot;
  };
  bool made = false;  // the outgoing block is there: the incoming one is no longer the newest
  for (const TapeEvent& e : events) {
    const bool allocates = e.kind == TapeEvent::Kind::alloc;
    if ((!allocates && e.kind != TapeEvent::Kind::free) || e.bytes == 0) continue;
    made = made || (allocates && e.id == names.outgoing);
    Event block;
    block.kind = allocates ? Event::Kind::alloc : Event::Kind::free;
    block.category = e.category;
    block.bytes = e.bytes;
    block.name = name_of_slot(e.id);
    block.stream = e.pool;
    block.used_on = e.pool == Stream::graphs ? e.pool : e.used_on;
    block.first_step = e.after_first_step ? 2 : 1;
    block.older = !allocates && made && e.id == names.incoming && names.left == names.chain;
    run.blocks.push_back(block);
  }
  return rows;
}

}  // namespace

void fill_tables(ModelRun& run) {
  for (std::size_t i = 0; i < run.segments.size(); ++i) {
    SegmentRun& s = run.segments[i];
    const std::int32_t base = detail::slot_base(run, i);
    const auto append = [&](TapeRun& forward, TapeRun& backward, std::int32_t names) {
      std::vector<std::int32_t> outlive = outliving_slots(forward, backward);
      for (const TapeEvent& e : backward.held)
        if (takes_over(backward, e.id)) outlive.push_back(e.id);
      forward.forward_rows = append_rows(
          run, forward.forward, forward.forward_kernels,
          {names, kChainedInputSlot, forward.output_slot, detail::kOutputName}, outlive);
      // A recomputation numbers its own.
      for (const TapeEvent& e : backward.held) outlive.push_back(e.id);
      outlive.insert(outlive.end(), backward.left.begin(), backward.left.end());
      backward.backward_rows = append_rows(
          run, backward.backward, backward.backward_kernels,
          {names, kChainedGradientSlot, backward.input_gradient_slot, detail::kGradientName,
           s.makes_along ? detail::kAlongName : detail::kGradientName},
          outlive);
    };
    append(s.forward, s.backward, base);
    const std::int32_t others = base + detail::shared_slots(s);
    if (s.others) append(s.others->forward, s.others->backward, others);
    if (s.behind) append(s.behind->forward, s.behind->backward, others + s.others->forward.slots);
    if (s.first) append(s.first->forward, s.first->backward, base);
  }
}

namespace {

/// The type of a shared tensor. One that is added to scores is cast for attention, and in a model
/// in one graph nothing else reads it.
DType type_of(const Shared& shared, const Regime& regime, bool one_graph) {
  const bool bias = shared.extent.scale == Scale::scores && !shared.needs_grad;
  if (one_graph && bias) return regime.compute;
  return shared.f32 ? DType::f32 : regime.params;
}

/// Bytes of one. A compiled model makes its masks itself (causal_mask_bytes).
std::int64_t size_of_shared(const Shared& shared, const Plan& plan, const Regime& regime,
                            const Sizes& sizes, bool one_graph) {
  const std::int64_t numel = elements(shared.extent, sizes);
  if (shared.mask_from == 0) return checked_mul(numel, size_of(type_of(shared, regime, one_graph)));
  const bool made = !plan.compiles_whole() && sizes.sequence >= shared.mask_from;
  return made ? checked_mul(numel, size_of(DType::b1)) : 0;
}

/// Bytes of shared tensors and of their gradients.
void size_shared(const Model& model, const Plan& plan, const Regime& regime, bool one_graph,
                 ModelRun& run) {
  const Sizes sizes = sizes_of(plan, model);
  for (const Shared& shared : model.shared) {
    const std::int64_t bytes =
        round_up(size_of_shared(shared, plan, regime, sizes, one_graph), kAllocationUnit);
    const std::int64_t output =
        run.segments[static_cast<std::size_t>(shared.maker)].forward.output_bytes;
    run.shared_bytes.push_back(shared.is_output ? 0 : bytes);
    run.shared_gradient_bytes.push_back(shared.is_output ? output : 0);
  }
}

/// The last segment that reads each shared tensor, and the first one.
void find_users(const Model& model, ModelRun& run) {
  for (const Shared& shared : model.shared)
    run.last_user.push_back(static_cast<std::size_t>(shared.maker));
  run.lets_go = run.last_user;
  for (std::size_t s = 0; s < run.segments.size(); ++s)
    for (const Input& in : run.segments[s].segment->graph.inputs()) {
      if (in.kind != InputKind::shared) continue;
      const auto i = static_cast<std::size_t>(in.shared);
      run.last_user[i] = s;
      const bool first = run.lets_go[i] == static_cast<std::size_t>(model.shared[i].maker);
      if (first && !model.shared[i].is_output) run.lets_go[i] = s;
    }
}

/// The images or sounds of a batch, which the loop holds.
std::int64_t brought_bytes(const Model& model, const Sizes& sizes) {
  const auto bytes = [](std::int64_t numbers) {
    return round_up(checked_mul(numbers, 4), kAllocationUnit);
  };
  return checked_add(bytes(checked_mul(sizes.images, model.facts.image.values)),
                     bytes(elements(model.facts.brings, sizes)));
}

/// The last segment comes first.
std::vector<Event> compiler_trials(const ModelRun& run) {
  std::vector<Event> trials;
  for (auto s = run.segments.rbegin(); s != run.segments.rend(); ++s)
    for (const TapeEvent& e : s->forward.trials) {
      Event block;
      block.kind = e.kind == TapeEvent::Kind::alloc ? Event::Kind::alloc : Event::Kind::free;
      block.category = e.category;
      block.bytes = e.bytes;
      trials.push_back(block);
    }
  return trials;
}

/// Whether what a segment hands on is read by the first of all blocks, which is computed again.
bool feeds_checkpoint(const Model& model, const Plan& plan, const CheckpointedBlocks& which,
                      std::size_t segment) {
  if (!plan.recomputes_blocks() || segment + 1 >= model.segments.size()) return false;
  for (std::size_t i = 0; i <= segment; ++i)
    if (model.segments[i].checkpointable) return false;
  const bool whole = plan.checkpointing != Checkpointing::selective &&
                     plan.checkpointing != Checkpointing::selective_op;
  return whole && model.segments[segment + 1].checkpointable &&
         (!plan.keeps_some_blocks() || which.has(0));
}

/// Whether the last block of a segment is checkpointed.
bool ends_checkpointed(const Model& model, const Plan& plan, const CheckpointedBlocks& which,
                       std::size_t segment) {
  if (!plan.recomputes_blocks() || !model.segments[segment].checkpointable) return false;
  std::int64_t blocks = 0;
  for (std::size_t i = 0; i <= segment; ++i)
    if (model.segments[i].checkpointable) blocks += model.segments[i].repeat;
  return !plan.keeps_some_blocks() || which.has(blocks - 1);
}

std::int64_t held_throughout(const Model& model, const Plan& plan, const Regime& regime,
                             const compiled::GraphCuts& cuts, const ModelRun& run) {
  return checked_add(
      checked_add(causal_mask_bytes(model, plan, regime, cuts, run), leaf_input_bytes(plan, run)),
      safe_softmax_bytes(model, plan, regime, run));
}

}  // namespace

ModelRun run_segments(const Model& model, const Plan& plan) {
  if (plan.workload.kind == WorkKind::inference)
    return run_pass(model, plan, {plan.workload.sequence_length, 0}, nullptr);
  const FrameworkTraits& framework = traits_of(plan);
  const Regime regime = regime_of(plan);
  ModelRun run{.buffers = model.facts.buffer_bytes};
  run.segments.reserve(model.segments.size());
  run.own_tapes = {plan.checkpoint_share, plan.trainer->checkpoints_first_of_each};
  Incoming in{.stream = regime.params};
  for (const Shared& shared : model.shared) run.shared_trains.push_back(shared.needs_grad);
  in.shared_trains = &run.shared_trains;
  // Where the graph breaks in every layer, each piece is cut by itself.
  const bool whole =
      plan.compiles_whole() && !breaks_in_layers(model, plan) && !model.facts.breaks_between_layers;
  const compiled::GraphCuts cuts = compiled::graph_cuts(
      model, regime, whole ? framework.graph_bytes(plan) : 0, plan.recomputes_blocks());
  const bool one_graph = whole && framework.graph_bytes(plan) == 0;
  in.leaf =
      one_graph && frozen_output(model, model.segments.front()) && is_told(model, plan, regime, 0);
  Incoming first;
  for (std::size_t i = 0; i < model.segments.size(); ++i) {
    in.told = is_told(model, plan, regime, i);
    const bool again = one_graph && i > 0 && ends_checkpointed(model, plan, run.own_tapes, i - 1);
    in.again = again ? &model.segments[i - 1] : nullptr;
    in.feeds_checkpoint = one_graph && !in.leaf && feeds_checkpoint(model, plan, run.own_tapes, i);
    if (i == 0) first = in;
    SegmentRun s =
        run_segment(model, model.segments[i], plan, regime, in, cuts.segments[i], run.own_tapes);
    s.sent_inputs = detail::inputs_being_sent(plan, model.segments[i],
                                              i > 0 ? run.segments[i - 1].forward.output_bytes : 0);
    const TapeRun& tape = s.first ? s.first->forward : s.forward;
    in.stream = s.forward.output_dtype;
    in.needs_grad = in.told || tape.output_needs_grad;
    s.makes_along =
        std::any_of(model.shared.begin(), model.shared.end(), [&](const Shared& shared) {
          return shared.read_along && static_cast<std::size_t>(shared.maker) == i;
        });
    note_shared(model, i, tape, in.told, run.shared_trains);
    run.segments.push_back(std::move(s));
  }
  if (one_graph) scatter_in_first_block(model, plan, regime, first, cuts.segments[0], run);
  keep_named_input(plan, run);
  fill_tables(run);
  size_shared(model, plan, regime, whole, run);
  run.shared_kept = kept_in_backward(model, plan, run);
  run.held_inputs = framework.held_inputs(plan, run);
  if (plan.records_graphs()) run.pool = Stream::graphs;
  if (plan.records_graphs() && in.leaf) run.held_over = run.segments.front().forward.output_bytes;
  run.held_throughout = held_throughout(model, plan, regime, cuts, run);
  run.brought = brought_bytes(model, sizes_of(plan, model));
  if (plan.parallel.pipeline > 1 || framework.keeps_tables) {
    for (std::int64_t& bytes : run.shared_bytes) run.resident_shared += std::exchange(bytes, 0);
    run.shared_kept.assign(run.shared_kept.size(), true);
  }
  find_users(model, run);
  run.trials = compiler_trials(run);
  run.ends_apart = ends_apart(model, plan, in.leaf);
  return run;
}

std::vector<SegmentRepeat> whole_segments(const ModelRun& run) {
  std::vector<SegmentRepeat> all;
  for (std::size_t i = 0; i < run.segments.size(); ++i)
    all.push_back({i, run.segments[i].segment->repeat});
  return all;
}

bool makes_workspace_late(const ModelRun& run) {
  const auto makes = [](const TapeEvent& e) { return e.kind == TapeEvent::Kind::workspace; };
  return std::any_of(run.segments.begin(), run.segments.end(), [&](const SegmentRun& s) {
    const std::vector<TapeEvent>& events = s.backward.backward;
    return std::any_of(events.begin(), events.end(), makes);
  });
}

double model_flops(const ModelRun& run, const Plan& plan) {
  double flops = 0;
  for (const SegmentRun& s : run.segments)
    flops +=
        static_cast<double>(s.segment->repeat) * (s.forward.model_flops + s.backward.model_flops);
  return flops * static_cast<double>(plan.workload.gradient_accumulation) /
         static_cast<double>(plan.parallel.pipeline);
}

Program program_of(const ModelRun& run) {
  Program program;
  program.blocks = run.blocks;
  program.kernels = run.kernels;
  program.run_kernels = run.kernels.size();
  if (run.buffers > 0) ProgramBuilder(program).resident(Category::other, run.buffers);
  return program;
}

namespace detail {
namespace {

/// Traffic by group and kind.
struct ExchangeName {
  Group group;
  Exchange kind;
  Collective collective;
  std::string_view what;
};
constexpr std::array kExchanges{
    ExchangeName{Group::tensor, Exchange::all_reduce, Collective::all_reduce,
                 "tensor-parallel all-reduce"},
    ExchangeName{Group::tensor, Exchange::all_gather, Collective::all_gather,
                 "tensor-parallel all-gather"},
    ExchangeName{Group::tensor, Exchange::reduce_scatter, Collective::reduce_scatter,
                 "tensor-parallel reduce-scatter"},
    ExchangeName{Group::sequence, Exchange::all_to_all, Collective::all_to_all,
                 "sequence-parallel all-to-all"},
    ExchangeName{Group::context, Exchange::ring, Collective::ring, "ring of keys and values"},
    ExchangeName{Group::context, Exchange::all_gather, Collective::all_gather,
                 "key and value all-gather"},
    ExchangeName{Group::expert, Exchange::all_to_all, Collective::all_to_all, "expert all-to-all"},
    ExchangeName{Group::expert, Exchange::all_reduce, Collective::all_reduce, "expert all-reduce"},
    ExchangeName{Group::expert, Exchange::all_gather, Collective::all_gather, "expert all-gather"},
};

}  // namespace

/// Of a step that becomes CUDA graphs (torch/_inductor/cudagraph_trees.py).
constexpr std::int32_t kRecorded = 2, kFirstReplay = 3;

void renew_held_over(ProgramBuilder& b, std::int64_t bytes) {
  if (bytes == 0) return;
  b.alloc_named(Category::activations, bytes, kHeldOverName);
  b.free_older(Category::activations, bytes, kHeldOverName);
  b.from_step(kFirstReplay + 1);
  b.alloc_named(Category::activations, bytes, kGivenName, Stream::graphs);
  b.from_step(kRecorded);
}

void drop_given(ProgramBuilder& b, std::int64_t bytes) {
  if (bytes == 0) return;
  b.free_named(Category::activations, bytes, kGivenName, Stream::graphs);
  b.from_step(kRecorded);
  Event gone;
  gone.kind = Event::Kind::free;
  gone.category = Category::activations;
  gone.bytes = bytes;
  gone.name = kHeldOverName;
  for (std::int32_t step = 1; step < kFirstReplay; ++step) b.once(step, {gone});
}

void begin_recording(ProgramBuilder& b, const ModelRun& run) {
  if (run.pool != Stream::graphs) return;
  Event empty;
  empty.kind = Event::Kind::empty_cache;
  b.once(kRecorded, {empty});
}

void emit_exchange(ProgramBuilder& b, const TapeExchange& e) {
  const auto* name = std::find_if(kExchanges.begin(), kExchanges.end(), [&](const auto& known) {
    return known.group == e.group && known.kind == e.kind;
  });
  assert(name != kExchanges.end() && "an exchange without a name");
  b.exchange(name->collective, e.group, e.bytes, name->what, e.ahead);
}

std::int32_t slots_of(const std::optional<LayerTapes>& layers) {
  return layers ? layers->forward.slots : 0;
}

std::int32_t slot_base(const ModelRun& run, std::size_t segment) {
  std::int32_t base = kFirstSlotName;
  for (std::size_t s = 0; s < segment; ++s)
    base += shared_slots(run.segments[s]) + slots_of(run.segments[s].others) +
            slots_of(run.segments[s].behind);
  return base;
}

std::int32_t shared_slots(const SegmentRun& s) {
  const std::int32_t own = std::max(s.forward.slots, s.backward.slots);
  return s.first ? std::max({own, s.first->forward.slots, s.first->backward.slots}) : own;
}

std::int64_t block_count(const ModelRun& run, const SegmentRepeat& repeat) {
  return run.segments[repeat.segment].segment->checkpointable ? repeat.count : 0;
}

std::int64_t block_count(const ModelRun& run, const std::vector<SegmentRepeat>& repeats) {
  std::int64_t blocks = 0;
  for (const SegmentRepeat& repeat : repeats) blocks += block_count(run, repeat);
  return blocks;
}

std::vector<Stretch> stretches(const ModelRun& run, const SegmentRun& s, std::int64_t first,
                               std::int64_t count) {
  if (!s.others) return {{&s, count}};
  std::vector<Stretch> all;
  for (std::int64_t place = first; place < first + count; ++place) {
    const bool second = place == 1 && run.own_tapes.all_behind();
    const bool behind = s.behind && place > 0 && !second && run.own_tapes.has(place - 1);
    const LayerTapes* tapes = run.own_tapes.has(place) ? &s : behind ? &*s.behind : &*s.others;
    if (all.empty() || all.back().tapes != tapes) all.push_back({tapes, 0});
    ++all.back().count;
  }
  return all;
}

void drop_held(ProgramBuilder& b, const ModelRun& run, const std::vector<SegmentRepeat>& repeats) {
  const auto drop = [&](const TapeRun& tape, std::int64_t count) {
    for (const TapeEvent& e : tape.held) b.free(e.category, checked_mul(e.bytes, count), e.pool);
  };
  std::int64_t block = block_count(run, repeats);
  for (std::size_t k = 0; k < repeats.size(); ++k) {
    const SegmentRun& s = run.segments[repeats[k].segment];
    const bool begins = repeats[k].begins && repeats[k].count > 0 && ends_segment(repeats, k);
    const auto first = firsts(s, begins);
    block -= block_count(run, repeats[k]);
    for (const Stretch& layers : stretches(run, s, block + first, repeats[k].count - first))
      for (const TapeRun* tape : {&layers.tapes->forward, &layers.tapes->backward})
        drop(*tape, layers.count);
    if (first > 0)
      for (const TapeRun* tape : {&s.first->forward, &s.first->backward}) drop(*tape, 1);
  }
}

void drop_left(ProgramBuilder& b, const ModelRun& run, const std::vector<SegmentRepeat>& repeats,
               LeftUntil until) {
  std::int64_t block = 0;
  for (std::size_t k = 0; k < repeats.size(); ++k) {
    const SegmentRun& s = run.segments[repeats[k].segment];
    const std::int32_t base = slot_base(run, repeats[k].segment);
    const auto first = firsts(s, repeats[k].begins && starts_segment(repeats, k));
    for (const Stretch& layers : stretches(run, s, block + first, repeats[k].count - first)) {
      const bool behind = s.behind && layers.tapes == &*s.behind;
      const std::int32_t others = base + shared_slots(s) + (behind ? slots_of(s.others) : 0);
      drop_left(b, layers.tapes->forward.*until, layers.tapes == &s ? base : others, layers.count);
    }
    if (first > 0) drop_left(b, s.first->forward.*until, base, 1);
    block += block_count(run, repeats[k]);
  }
}

}  // namespace detail
}  // namespace shardplan
