#include "lowering/segment_run.h"

#include <algorithm>
#include <utility>

#include "frameworks/registry.h"
#include "lowering/gradient_uses.h"
#include "lowering/library_workspaces.h"
#include "lowering/pipeline/stages.h"
#include "program/compiled/breaks.h"
#include "program/compiled/cuts.h"
#include "program/compiled/guards.h"
#include "program/compiled/run.h"
#include "trainers/description.h"

namespace shardplan {
namespace {

/// A tape of both passes as a layer's two.
LayerTapes both_passes(TapeRun tape) {
  LayerTapes layer{std::move(tape), {}};
  layer.backward.backward = std::move(layer.forward.backward);
  layer.backward.backward_kernels = std::move(layer.forward.backward_kernels);
  layer.backward.exchanges = layer.forward.exchanges;
  layer.backward.backward_tail = layer.forward.backward_tail;
  layer.backward.input_gradient_slot = layer.forward.input_gradient_slot;
  layer.backward.gradient_operands = layer.forward.gradient_operands;
  layer.backward.carried = std::move(layer.forward.carried);
  layer.backward.left = std::move(layer.forward.left);
  return layer;
}

/// What a forward pass keeps, in bytes.
std::int64_t left_by(const TapeRun& tape) {
  std::int64_t left = 0;
  for (const TapeEvent& event : tape.forward) {
    if (event.kind == TapeEvent::Kind::alloc) left += event.bytes;
    if (event.kind == TapeEvent::Kind::free) left -= event.bytes;
  }
  return left;
}

/// Whether these are all blocks of the model: ModelRun::own_tapes counts through.
bool are_all_blocks(const Model& model, const Segment& segment) {
  return segment.checkpointable &&
         std::count_if(model.segments.begin(), model.segments.end(),
                       [](const Segment& s) { return s.checkpointable; }) == 1;
}

/// Sets the graphs that most layers of a segment are in, and runs the others where it `mixes`.
template <typename Run>
void run_cuts(const std::vector<compiled::Cut>& cuts, bool mixes, TapeOptions& options, Run&& run,
              SegmentRun& s, CheckpointedBlocks& own_tapes) {
  std::vector<std::int64_t> kept;
  for (const compiled::Cut& cut : cuts) {
    options.graph_parts = &cut.parts;
    kept.push_back(cuts.size() > 1 ? left_by(run(TapeMode::keep)) : 0);
  }
  const compiled::CutChoice choice = compiled::choose(cuts, kept);
  if (mixes && choice.others != choice.own) {
    options.graph_parts = &cuts[choice.others].parts;
    s.others = both_passes(run(TapeMode::keep));
    own_tapes = {{.count = choice.count}, false};
  }
  options.graph_parts = &cuts[choice.own].parts;
}

/// Of each stage the last block's tensors stay on the GPU, whichever modules send theirs: they come
/// first in the backward pass.
template <typename Run>
void keep_last_block(const Model& model, const Plan& plan, TapeOptions& options, Run&& run,
                     SegmentRun& s, CheckpointedBlocks& own_tapes) {
  const std::uint32_t modules = std::exchange(options.sent.modules, 0);
  s.others = both_passes(run(TapeMode::keep));
  own_tapes = {{.count = fewest_blocks(model, plan.parallel) - 1}, false};
  options.sent.modules = modules;
}

/// Whether what blocks begin with is a sum, as of words and positions.
bool sums_embeddings(const Model& model) {
  const Graph& g = model.segments.front().graph;
  return std::any_of(g.ops().begin(), g.ops().end(),
                     [&](const Op& op) { return op.kind == OpKind::add && op.out == g.output(); });
}

/// Blocks that are left alone where others are checkpointed; `together`: in one graph with them.
/// The first one behind a checkpoint, which begins the model, has a long chain in front of it where
/// embeddings are summed; rows of one table are no part of it.
template <typename Run>
void run_kept_blocks(const Model& model, bool together, const CheckpointedBlocks& which,
                     TapeOptions& options, Run&& run, SegmentRun& s) {
  options.input_again = together && which.all_behind();
  if (options.input_again && sums_embeddings(model)) options.checkpointed = s.segment;
  s.others = both_passes(run(TapeMode::keep));
  options.input_again = true;
  options.checkpointed = s.segment;
  if (together) s.behind = both_passes(run(TapeMode::keep));
}

/// Whether functions of autograd make products that a checkpoint in a graph does not tag.
bool has_untagged_products(const Model& model, const Segment& segment) {
  const auto& ops = segment.graph.ops();
  return std::any_of(ops.begin(), ops.end(), [&](const Op& op) {
    return op.kind == OpKind::linear && op.weight != kNone &&
           model.parameters[static_cast<std::size_t>(op.weight)].widened();
  });
}

/// Of one graph. Weights in four bits are widened again by an operator that makes its results
/// itself: buffers around it are not followed.
void note_blocks(const Model& model, const Segment& segment, const Plan& plan,
                 TapeOptions& options) {
  options.shared_before = segment.checkpointable;
  options.blocks_alike = are_all_blocks(model, segment) && !has_untagged_products(model, segment);
  if (options.blocks_alike && !plan.keeps_some_blocks()) options.blocks_in_row = segment.repeat;
}

/// Whether a checkpoint in a graph leaves any result without a tag.
bool has_untagged(const Model& model, const Segment& segment) {
  const auto& ops = segment.graph.ops();
  return has_untagged_products(model, segment) ||
         std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.own_function; });
}

/// What a checkpointed block leaves of its results.
KeptResults kept_results(const Model& model, const Segment& segment, const Plan& plan,
                         bool compiled) {
  if (plan.checkpointing == Checkpointing::selective) return KeptResults::products;
  if (plan.checkpointing == Checkpointing::selective_op) return KeptResults::most_products;
  return compiled && has_untagged(model, segment) ? KeptResults::untagged : KeptResults::none;
}

/// The graphs that breaks and DDP's buckets leave of a segment.
std::vector<std::int32_t> parts_of(const Model& model, const Segment& segment, const Plan& plan,
                                   const Regime& regime) {
  if (traits_of(plan).breaks_at_modules(plan)) return compiled::parts_at_modules(segment);
  if (traits_of(plan).breaks_at_blocks(plan) && !compiled::breaks_in_layers(model))
    return compiled::parts_at_blocks(model, segment, plan.trainer->shards_ends_apart);
  std::vector<std::int32_t> parts = compiled::parts_at_breaks(model, segment);
  const std::int64_t graph_bytes = traits_of(plan).graph_bytes(plan);
  if (graph_bytes == 0) return parts;
  return compiled::cut_between_breaks(model, regime, segment.graph, parts, graph_bytes);
}

MlpTiles tiles_of(const Segment& segment, const Plan& plan) {
  MlpTiles tiles;
  if (!segment.checkpointable || segment.of_images) return tiles;
  const FrameworkTraits& framework = traits_of(plan);
  tiles.count = plan.mlp_tiles;
  tiles.sums =
      framework.tiled_mlps == TiledMlps::last_part ? TileSums::last_part : plan.trainer->tile_sums;
  const bool reduced = framework.shards_parameters(plan) && plan.syncs_each_batch();
  tiles.accumulates = plan.workload.gradient_accumulation > 1 && !reduced;
  return tiles;
}

/// Whether it is the first one of blocks.
bool begins_blocks(const Model& model, const Segment& segment) {
  const auto block = std::find_if(model.segments.begin(), model.segments.end(),
                                  [](const Segment& s) { return s.checkpointable; });
  return block != model.segments.end() && &*block == &segment;
}

/// Whether a block adds what all of them share, such as a mask, to what it has made itself.
bool adds_shared(const Segment& segment) {
  const Graph& g = segment.graph;
  return std::any_of(g.ops().begin(), g.ops().end(), [&](const Op& op) {
    return op.kind == OpKind::add &&
           std::any_of(g.inputs().begin(), g.inputs().end(), [&](const Input& in) {
             return in.kind == InputKind::shared && (in.value == op.in[0] || in.value == op.in[1]);
           });
  });
}

/// Whether its use of a mask is near to what the mask is made of: that of the first block, but for
/// adapters, beside which it is more than a hundred operations behind
/// (ban_if_long_fusible_chains).
bool uses_mask_first(const Model& model, const Segment& segment, const Plan& plan) {
  return !plan.workload.lora && begins_blocks(model, segment) && adds_shared(segment);
}

bool draws_in_blocks(const Model& model) {
  return std::any_of(model.segments.begin(), model.segments.end(), [](const Segment& s) {
    const std::vector<Op>& ops = s.graph.ops();
    return s.checkpointable && std::any_of(ops.begin(), ops.end(),
                                           [](const Op& op) { return op.kind == OpKind::dropout; });
  });
}

/// Of the logits that a whole model returns beside its loss, and of zeros in their size. They are
/// another graph's where embeddings are told to need a gradient.
std::int64_t believed_room(const Model& model, const Plan& plan, const Regime& regime,
                           const TapeOptions& options, const Incoming& in) {
  if (!plan.compiles_whole() || model.facts.breaks_before_loss || options.frees_returned || in.leaf)
    return 0;
  const Graph& head = model.segments.back().graph;
  std::int64_t logits = 0;
  for (const Op& op : head.ops())
    if (op.kind == OpKind::linear && head.value(op.out).logits)
      logits = elements(head.value(op.out).extent, sizes_of(plan, model));
  return checked_mul(2, checked_mul(logits, size_of(regime.compute)));
}

TapeOptions options_of(const Model& model, const Segment& segment, const Plan& plan,
                       const Regime& regime, const Incoming& in) {
  const FrameworkTraits& framework = traits_of(plan);
  TapeOptions options;
  options.product_share = plan.checkpoint_share.every;
  options.stops_early = plan.trainer->recomputation_stops_early;
  options.traced_whole = plan.compiles_whole();
  if (plan.records_graphs()) options.pool = Stream::graphs;
  framework.set_tape(plan, segment, options);
  options.saved_input = framework.saved_input(plan);
  options.tiles = tiles_of(segment, plan);
  options.offloading = plan.activation_offloading;
  options.last_segment = &segment == &model.segments.back();
  const bool late = framework.makes_workspace_late(plan) && plan.trainer->starts_cold;
  if (options.last_segment && late) options.workspace = cublas_workspace(plan.cluster.gpu);
  options.multiprocessors = plan.cluster.gpu.multiprocessors.value_or(kTypicalMultiprocessors);
  options.l2_cache_bytes = plan.cluster.gpu.l2_cache_bytes.value_or(0);
  const Gpu& gpu = plan.cluster.gpu;
  const auto& peak = gpu.peak[regime.compute == DType::f32 ? PeakRate::fp32 : PeakRate::bf16];
  if (peak && gpu.memory_bandwidth) options.product_balance = *peak / *gpu.memory_bandwidth;
  options.output_is_told = in.told;
  options.output_gets_grad = in.told || !frozen_output(model, segment);
  options.ends_apart = options.last_segment && ends_apart(model, plan, in.leaf);
  options.loss_apart =
      plan.compiles_whole() && options.last_segment && model.facts.breaks_before_loss;
  // Without autocast accelerate does not wrap the model, and nobody holds what it returns. Of
  // engines' own types that is not known.
  const bool bare = framework.under_trainer == UnderTrainer::autocast && !plan.autocasts_forward();
  options.frees_returned =
      plan.trainer->frees_outputs || bare || options.ends_apart || options.loss_apart;
  options.scattered_operands = in.scattered_operands;
  options.believed_room = believed_room(model, plan, regime, options, in);
  options.input_again = in.again != nullptr;
  options.checkpointed = options.input_again && in.again->repeat > 1 ? in.again : nullptr;
  options.output_again = in.feeds_checkpoint;
  options.draws_again = plan.compiles_whole() && !model.facts.breaks_between_layers &&
                        plan.recomputes_blocks() && draws_in_blocks(model);
  options.product_again = in.again != nullptr && has_untagged_products(model, *in.again);
  options.shared_trains = in.shared_trains;
  const bool one_frame =
      plan.compiles_whole() && !model.facts.breaks_between_layers && !breaks_in_layers(model, plan);
  options.guards = compiled::guards_before(model, segment, !one_frame);
  return options;
}

/// All iterations are given what the first one is.
SegmentRun run_alike(const Model& model, const Segment& segment, const Plan& plan,
                     const Regime& regime, const Incoming& in,
                     const std::vector<compiled::Cut>& cuts, CheckpointedBlocks& own_tapes) {
  const Sizes sizes = sizes_of(plan, model);
  const bool checkpointed = plan.recomputes_blocks() && segment.checkpointable;
  SegmentRun s;
  s.segment = &segment;
  const bool breaks = breaks_in_layers(model, plan);
  const std::vector<std::int32_t> parts =
      breaks ? parts_of(model, segment, plan, regime) : std::vector<std::int32_t>{};
  const bool compiled = (plan.compiles_whole() || (plan.compile && segment.checkpointable)) &&
                        !(breaks && parts.empty());
  // torch.utils.checkpoint is hidden from Dynamo (torch/utils/checkpoint.py, _disable_dynamo),
  // which traces into it only where nothing breaks the graph within: else all that it calls is
  // eager.
  const bool hidden = breaks && segment.checkpointable;
  TapeOptions options = options_of(model, segment, plan, regime, in);
  if (checkpointed) options.kept = kept_results(model, segment, plan, compiled && !hidden);
  options.graph_breaks = breaks;
  options.module_hooks = breaks && traits_of(plan).breaks_at_modules(plan);
  if (breaks) options.graph_parts = &parts;
  const auto run = [&](TapeMode mode) {
    const bool eager = hidden && mode != TapeMode::keep;
    TapeOptions here = options;
    here.given_mask = eager && plan.compiles_whole();
    const auto run_passes = compiled && !eager ? run_compiled : run_tape;
    return run_passes(model, segment, regime, sizes, in.stream, mode, here);
  };
  if (has_no_graph(model, segment, in)) {
    options.input_needs_grad = options.output_gets_grad = false;
    static_cast<LayerTapes&>(s) = both_passes(run(TapeMode::keep));
    return s;
  }
  const bool one_graph =
      plan.compiles_whole() && !breaks && cuts.empty() && !model.facts.breaks_between_layers;
  if (one_graph) note_blocks(model, segment, plan, options);
  if (!cuts.empty()) run_cuts(cuts, are_all_blocks(model, segment), options, run, s, own_tapes);
  // Under a policy the tags of a compiled block's operations say what its one graph keeps.
  const bool tagged = compiled && !hidden && options.kept != KeptResults::none;
  const bool makes_graph = in.told || !frozen_output(model, segment);
  if (checkpointed && !tagged && makes_graph) {
    s.forward = run(TapeMode::discard);
    s.backward = run(TapeMode::redo);
    if (plan.keeps_some_blocks()) run_kept_blocks(model, one_graph, own_tapes, options, run, s);
  } else {
    static_cast<LayerTapes&>(s) = both_passes(run(TapeMode::keep));
    if (options.sent.active) keep_last_block(model, plan, options, run, s, own_tapes);
    if (tagged && plan.keeps_some_blocks()) {
      options.kept = KeptResults::none;
      run_kept_blocks(model, one_graph, own_tapes, options, run, s);
    }
    const bool used_first = one_graph && !tagged && uses_mask_first(model, segment, plan);
    if (used_first) options.shared_before = false;
    // DeepSpeed's stage-3 linear keeps its input whatever needs a gradient.
    const bool reads_frozen = !in.needs_grad && !regime.zero3_linear;
    if (reads_frozen) options.input_needs_grad = false;
    if (reads_frozen || used_first) s.first = both_passes(run(TapeMode::keep));
  }
  return s;
}

}  // namespace

/// Blocks that end with a norm give one another what autocast makes of it, in fp32; the first one
/// has what the embeddings give, in the parameters' type.
SegmentRun run_segment(const Model& model, const Segment& segment, const Plan& plan,
                       const Regime& regime, const Incoming& in,
                       const std::vector<compiled::Cut>& cuts, CheckpointedBlocks& own_tapes) {
  SegmentRun s = run_alike(model, segment, plan, regime, in, cuts, own_tapes);
  const DType given = s.forward.output_dtype;
  if (plan.compile || segment.repeat == 1 || given == in.stream) return s;
  const bool own = !s.others || own_tapes.has(0);
  LayerTapes first = s.first ? *s.first : own ? LayerTapes(s) : *s.others;
  Incoming next = in;
  next.stream = given;
  s = run_alike(model, segment, plan, regime, next, cuts, own_tapes);
  s.first = std::move(first);
  return s;
}

void scatter_in_first_block(const Model& model, const Plan& plan, const Regime& regime, Incoming in,
                            const std::vector<compiled::Cut>& cuts, ModelRun& run) {
  if (run.segments.size() < 2 || !model.segments[1].checkpointable) return;
  const SegmentRun& block = run.segments[1];
  const bool own = !block.others || run.own_tapes.has(0);
  in.scattered_operands = (own ? block.backward : block.others->backward).gradient_operands;
  if (in.scattered_operands == 0) return;
  static_cast<LayerTapes&>(run.segments[0]) =
      run_segment(model, model.segments[0], plan, regime, in, cuts, run.own_tapes);
}

}  // namespace shardplan
