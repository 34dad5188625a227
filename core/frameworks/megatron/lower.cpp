// Megatron-LM: a stage's share of the network, its gradients in fp32 buffers, master weights and
// states whole or divided over data-parallel ranks. docs/explanation/parallelism.md derives the
// terms.
#include "frameworks/megatron/lower.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "formats/product_recipe.h"
#include "frameworks/megatron/buffers.h"
#include "frameworks/megatron/built.h"
#include "frameworks/megatron/fsdp_units.h"
#include "frameworks/megatron/hooks.h"
#include "frameworks/megatron/matrices.h"
#include "frameworks/megatron/received.h"
#include "frameworks/megatron/saved_inputs.h"
#include "frameworks/megatron/sent_modules.h"
#include "frameworks/megatron/shared_gradients.h"
#include "frameworks/megatron/transformer_engine.h"
#include "frameworks/megatron/unread_gradients.h"
#include "lowering/library_workspaces.h"
#include "lowering/optimizer_kernels.h"
#include "lowering/optimizer_memory.h"
#include "lowering/pipeline/schedule.h"
#include "lowering/tensors.h"
#include "optimizers/states.h"
#include "parallel/degrees.h"
#include "parallel/groups.h"

namespace shardplan {
namespace {

/// Of published runs with Muon, further tokens or Megatron-FSDP (data/published/megatron_ci.json)
/// the furthest above its prediction: gpt3_moe_mcore_te_ep8_resume_torch_dist_dist_muon, 3.284 GiB
/// where 2.899 are predicted.
constexpr double kMostOver = 1.14;

class MegatronLowering {
 public:
  MegatronLowering(const Model& model, const Plan& plan, const ModelRun& run, std::int64_t rank)
      : model_(model),
        plan_(plan),
        run_(run),
        options_(plan.framework.megatron),
        program_(program_of(run)),
        groups_(group_shapes(plan)),
        stage_(stage_of_rank(model, plan, rank)),
        own_(parameters_of(model, stage_)),
        matrices_(matrices_of(own_, plan.optimizer)),
        b_(program_) {
    program_.rank = rank;
    program_.groups = groups_;
    program_.bubble_share = bubble_share(plan);
    program_.communicator_bytes = userbuffer_bytes(model, plan);
    lay_out_buffers();
  }

  Program run() {
    add_residents();
    program_.model_bytes = built_bytes(program_.resident);
    program_.build = build_of(own_, plan_, keeps_parts() ? &buffers_ : nullptr, program_.resident);
    MegatronHooks hooks{
        model_, options_, unread_gradients(), late_workspace(), 0, 0, ReceivedTensors(run_, stage_),
        {}};
    b_.in_first_step(workspaces_but(program_.resident, hooks.made_late()));
    drop_widened_gradients();
    const StageSchedule schedule = stage_schedule(plan_, stage_.index);
    const bool shards = options_.shard_parameters;
    const bool gathers = divides() && (options_.overlap_param_gather || shards);
    std::vector<bool> gathered(stage_.chunks.size(), !gathers);
    went_back_.assign(stage_.chunks.size(), false);
    // What was received in the step before goes with a chunk's first pass alone.
    emit_schedule(
        b_, schedule, {.first_forward = true, .last_backward = gathers},
        [&](std::int64_t c) {
          const auto at = static_cast<std::size_t>(c);
          const bool gathers_now = !gathered[at];
          gathered[at] = !shards;
          if (gathers_now) gather_chunk(buffers_[at], GatherPart::first_bucket);
          const std::int64_t named = named_embedding_bytes(run_, plan_, chunk(c));
          hooks.named_input = named;
          hooks.blocks_begin = blocks_begin(run_, chunk(c));
          hooks.received.forward_begins(c);
          emit_chunk_forward(b_, model_, run_, plan_, chunk(c), SentOutput::freed, hooks);
          hooks.received.forward_ends(b_);
          b_.free(Category::activations, named);
          if (gathers_now) gather_chunk(buffers_[at], GatherPart::other_buckets);
          if (gathers && !shards && at + 1 < gathered.size() && schedule.warmup[at + 1] == 0 &&
              !gathered[at + 1]) {
            gathered[at + 1] = true;
            gather_chunk(buffers_[at + 1], GatherPart::first_bucket);
          }
        },
        [&](std::int64_t c, bool last) {
          if (shards)
            for (const GatherPart part : {GatherPart::first_bucket, GatherPart::other_buckets})
              gather_chunk(buffers_[static_cast<std::size_t>(c)], part);
          hooks.received.backward_begins(b_);
          emit_chunk_backward(b_, model_, run_, plan_, chunk(c), SentOutput::freed, hooks,
                              backward_of(c));
          hooks.received.backward_ends(b_);
          if (last || options_.shard_gradients) reduce_gradients();
          if (last) {
            add_up_tied();
            average_whole();
          }
        });
    hooks.received.step_ends(b_);
    step();
    return std::move(program_);
  }

 private:
  std::int64_t ranks(Group group) const {
    return std::max<std::int64_t>(1, groups_[static_cast<std::size_t>(group)].ranks);
  }
  /// Ranks of the group that divide master weights and states.
  std::int64_t owners(Group group) const {
    return std::max<std::int64_t>(1, ranks(group) / options_.distributed_optimizer_instances);
  }
  /// This rank's among those, which are the furthest apart of a stage's.
  std::int64_t place_in(Group group) const {
    const std::int64_t stage = plan_.cluster.world() / plan_.parallel.pipeline;
    return program_.rank % stage / std::max<std::int64_t>(1, stage / ranks(group)) % owners(group);
  }
  const StageChunk& chunk(std::int64_t c) const {
    return stage_.chunks[static_cast<std::size_t>(c)];
  }
  bool divides() const { return options_.distributed_optimizer; }
  /// Masters and states are those of parts of parameters: Muon's matrices stay whole, Megatron-FSDP
  /// has buffers of its own.
  bool keeps_parts() const {
    return divides() && !options_.shard_parameters && matrices_.elements == 0;
  }

  /// In a chunk's first pass a layer stands for itself: what it makes, the others find there.
  std::vector<SegmentRepeat> backward_of(std::int64_t c) {
    const std::vector<SegmentRepeat>& forward = chunk(c).repeats;
    std::vector<SegmentRepeat> repeats(forward.rbegin(), forward.rend());
    const auto at = static_cast<std::size_t>(c);
    if (went_back_[at]) return repeats;
    went_back_[at] = true;
    return with_layers_apart(repeats);
  }

  UnreadGradients unread_gradients() const {
    if (!options_.gradient_accumulation_fusion || !options_.transformer_engine) return {};
    const bool logits = stage_.chunks.back().last;
    return {own_, plan_.precision.params, logits ? tied_table(model_) : kNone};
  }
  /// PyTorch's own second one, where there are two.
  std::int64_t late_workspace() const {
    return multiplies_itself(plan_, stage_.chunks.back().last) ? cublas_workspace(plan_.cluster.gpu)
                                                               : 0;
  }

  /// Each chunk has buffers of its own, of which those of the first chunk of the first stage are
  /// cut into buckets (megatron/training/training.py, per_chunk_bucket_sizes).
  void lay_out_buffers() {
    for (std::size_t c = 0; c < stage_.chunks.size(); ++c) {
      Stage only = stage_;
      only.chunks = {stage_.chunks[c]};
      MegatronOptions options = options_;
      if (stage_.index > 0 || c > 0) options.bucket_size = std::numeric_limits<std::int64_t>::max();
      buffers_.push_back(gradient_buffers(parameters_of(model_, only), options, owners(Group::data),
                                          owners(Group::expert_data),
                                          {place_in(Group::data), place_in(Group::expert_data)}));
    }
  }
  /// Of all chunks from number `first` on.
  GradientBuffers buffers_from(std::size_t first) const {
    GradientBuffers sum;
    for (std::size_t c = first; c < buffers_.size(); ++c) {
      sum.dense.elements += buffers_[c].dense.elements;
      sum.dense.buckets += buffers_[c].dense.buckets;
      sum.experts.elements += buffers_[c].experts.elements;
      sum.experts.buckets += buffers_[c].experts.buckets;
    }
    return sum;
  }

  /// Elements whose master weights and states this rank keeps.
  std::int64_t owned() const {
    if (!divides()) return own_.trainable_count();
    const GradientBuffers all = buffers_from(0);
    return all.dense.elements / owners(Group::data) +
           all.experts.elements / owners(Group::expert_data) +
           matrices_.above_share(owners(Group::data));
  }

  /// Of `elements` in one of the optimizer's vectors.
  std::int64_t state_bytes(std::int64_t elements) const {
    const DType type = plan_.precision.optimizer_states;
    const auto of = [&](std::int64_t count, bool special) {
      const Updated flat{.given = Given::flat, .numel = count, .whole = count, .special = special};
      return shardplan::state_bytes(flat, plan_.optimizer, {type, type}).total();
    };
    const std::int64_t special = matrices_.of(elements);
    return of(special, true) + of(elements - special, false);
  }

  void add_residents() {
    const Precision& p = plan_.precision;
    const bool logits = stage_.chunks.back().last;
    add_product_workspaces(b_, own_, plan_, logits);
    for (const Event& e : unread_gradients().all()) b_.resident(e.category, e.bytes);
    add_cast_weights(b_, own_, plan_);
    if (logits) add_gathered_input();
    append_frozen_parameters(program_.resident, own_, plan_);
    if (options_.shard_parameters)
      add_sharded_parameters();
    else if (divides())  // those that train are moved into their buffers
      add_buffers(Category::parameters, size_of(p.params));
    else
      add_whole(Category::parameters, size_of(p.params));
    add_gradients();
    b_.resident(Category::other, batch_bytes(plan_));
    b_.resident(Category::other, run_.resident_shared);
    const std::int64_t master = p.params != DType::f32 && p.master ? size_of(*p.master) : 0;
    const bool bridged = model_.facts.image.has_tower || model_.facts.has_state;
    const bool narrow_experts =
        recipe_of(p.linear).cast != OperandCast::none && expert_count(model_) > 0;
    const bool unjudged = matrices_.elements > 0 || options_.shard_parameters ||
                          options_.mtp_num_layers > 0 || bridged || narrow_experts ||
                          sent_modules(plan_).active;
    if (unjudged) program_.most_over = kMostOver;
    program_.optimizer_source =
        unjudged ? Source::modelled : states_source(plan_.optimizer, Given::flat);
    if (keeps_parts()) {
      if (master > 0)
        for (const Event& e : shard_tensors(buffers_, Category::master_parameters, master))
          program_.resident.push_back(e);
      for (const Event& e : shard_states(buffers_, plan_)) program_.resident.push_back(e);
      return;
    }
    if (divides()) {
      b_.resident(Category::master_parameters, round_up(owned() * master, kAllocationUnit));
      b_.resident(Category::optimizer_states, round_up(state_bytes(owned()), kAllocationUnit));
      return;
    }
    add_whole(Category::master_parameters, master);
    for (const OwnedTensor& t : trainable_shards(own_, 1))
      append_tensors(program_.resident, Category::optimizer_states,
                     round_up(state_bytes(t.numel), kAllocationUnit), t.count);
  }

  /// Under sequence parallelism the head's input is gathered into a buffer of its own, kept for
  /// good (tensor_parallel/layers.py, get_global_memory_buffer).
  void add_gathered_input() {
    const Parallel& parallel = plan_.parallel;
    if (!parallel.sequence_parallel || parallel.tensor == 1) return;
    const Sizes n = sizes_of(plan_, model_);
    const std::int64_t tokens =
        checked_mul(n.batch, ceil_div(n.sequence, parallel.sequence * parallel.context));
    const std::int64_t elements = checked_mul(tokens, model_.facts.hidden);
    b_.resident(Category::communication_buffers,
                round_up(elements * size_of(plan_.precision.params), kAllocationUnit));
  }

  /// A rank's part, the whole of two blocks, of which one is gathered while the other is used
  /// (--fsdp-double-buffer), and what no block has: the embedding and the head, at their use.
  void add_sharded_parameters() {
    const std::int64_t each = size_of(plan_.precision.params);
    b_.resident(Category::parameters, round_up(owned() * each, kAllocationUnit));
    b_.resident(Category::communication_buffers,
                round_up(largest_block(own_) * each, kAllocationUnit), 2);
    b_.resident(Category::communication_buffers,
                round_up(outside_blocks(own_) * each, kAllocationUnit));
  }

  /// Divided, a rank keeps its part, and the buckets of two blocks: one that fills while the other
  /// is reduced.
  void add_gradients() {
    const std::int64_t each = size_of(options_.gradients);
    if (!options_.shard_gradients) {
      add_buffers(Category::gradients, each);
      return;
    }
    b_.resident(Category::gradients, round_up(owned() * each, kAllocationUnit));
    b_.resident(Category::communication_buffers,
                round_up(largest_block(own_) * each, kAllocationUnit), 2);
  }

  void add_buffers(Category category, std::int64_t bytes_each) {
    for (const GradientBuffers& chunk : buffers_)
      for (const GradientBuffer& buffer : {chunk.dense, chunk.experts})
        b_.resident(category, round_up(buffer.elements * bytes_each, kAllocationUnit));
  }

  void add_whole(Category category, std::int64_t bytes_each) {
    if (bytes_each == 0) return;
    for (const Event& tensor : trainable_tensors(own_, category, bytes_each))
      program_.resident.push_back(tensor);
  }

  void collective(Collective kind, Group group, std::int64_t bytes, std::string_view what,
                  std::int64_t buckets, bool beside) {
    if (bytes == 0 || ranks(group) == 1) return;
    if (beside)
      b_.reduce_buckets(kind, bytes, what, buckets);
    else
      b_.collective(kind, bytes, what, buckets);
    program_.events.back().group = group;
    program_.events.back().once_a_step = !options_.shard_gradients;
  }

  /// The later chunks first, whose last backward passes come first.
  void reduce_gradients() {
    if (buffers_.size() > 1) reduce(buffers_from(1));
    reduce(buffers_.front());
    b_.wait(Stream::communication);
  }

  void reduce(const GradientBuffers& buffers) {
    const auto kind = divides() ? Collective::reduce_scatter : Collective::all_reduce;
    const auto what = divides() ? "gradient reduce-scatter" : "gradient all-reduce";
    const std::int64_t each = size_of(options_.gradients);
    const bool beside = options_.overlap_grad_reduce;
    collective(kind, Group::data, buffers.dense.elements * each, what, buffers.dense.buckets,
               beside);
    collective(kind, Group::expert_data, buffers.experts.elements * each, what,
               buffers.experts.buckets, beside);
  }

  /// A tied embedding is on the first and on the last stage, which add up its gradient. Of two
  /// ranks each sends the other as much as it has.
  void add_up_tied() {
    if (plan_.parallel.pipeline == 1) return;
    const bool end = stage_.index == 0 || stage_.index == plan_.parallel.pipeline - 1;
    const std::int64_t elements = tied_elements();
    if (!end || elements == 0) return;
    b_.exchange(Collective::send, Group::pipeline, elements * size_of(options_.gradients),
                "tied embedding's gradient", false);
    b_.wait(Stream::communication);
  }

  /// Parameters that every tensor-parallel rank has whole, of code that is not Megatron Core's
  /// (megatron/core/models/huggingface/module.py; distributed/finalize_model_grads.py).
  void average_whole() {
    if (plan_.parallel.tensor == 1 || stage_.index > 0) return;
    const std::int64_t elements = whole_elements(model_);
    if (elements == 0) return;
    b_.exchange(Collective::all_reduce, Group::tensor, elements * size_of(options_.gradients),
                "whole parameters' gradients", false);
    b_.wait(Stream::communication);
  }

  std::int64_t tied_elements() const {
    const ParameterId id = tied_table(model_);
    return id == kNone ? 0 : model_.parameters[static_cast<std::size_t>(id)].numel;
  }

  /// Which of a chunk's buckets: a module's forward hook waits for its own and has the next
  /// gathered beside it, once a step (distributed_data_parallel.py, _make_forward_pre_hook).
  enum class GatherPart : std::uint8_t { first_bucket, other_buckets };

  void gather_chunk(const GradientBuffers& chunk, GatherPart part) {
    const std::int64_t each = size_of(plan_.precision.params);
    const auto gather = [&](Group group, const GradientBuffer& buffer) {
      if (buffer.elements == 0 || ranks(group) == 1) return;
      const std::int64_t first = buffer.elements / buffer.buckets * each;
      const bool one = part == GatherPart::first_bucket;
      const std::int64_t bytes = one ? first : buffer.elements * each - first;
      const std::int64_t buckets = one ? 1 : buffer.buckets - 1;
      if (buckets == 0) return;
      b_.gather_buckets(bytes, "parameter all-gather", buckets, group);
      program_.events.back().once_a_step = !options_.shard_parameters;
    };
    gather(Group::data, chunk.dense);
    gather(Group::expert_data, chunk.experts);
  }

  /// All at once, when the optimizer is done.
  void gather_parameters() {
    if (!divides()) return;
    const std::int64_t each = size_of(plan_.precision.params);
    const GradientBuffers all = buffers_from(0);
    const auto gather = [&](Group group, const GradientBuffer& buffer) {
      if (buffer.elements == 0 || ranks(group) == 1) return;
      b_.collective(Collective::all_gather, buffer.elements * each, "parameter all-gather",
                    buffer.buckets, group);
    };
    gather(Group::data, all.dense);
    gather(Group::expert_data, all.experts);
    b_.wait(Stream::communication);
  }

  void step() {
    b_.begin_phase(Phase::step);
    const double own = static_cast<double>(owned());
    const double kept =
        options_.shard_gradients ? own : static_cast<double>(buffers_from(0).elements());
    const auto bytes_of = [](DType type) { return static_cast<double>(size_of(type)); };
    // The buffer is zero again for the next step; sums of several ranks become means (read and
    // written).
    const double passes = ranks(Group::data) > 1 ? 3 : 1;
    b_.compute({sweep(passes * bytes_of(options_.gradients) * kept, options_.gradients)});
    emit_allocs(b_, widened_gradients());
    if (plan_.gradient_clipping > 0) b_.compute({sweep(3 * 4 * own, DType::f32)});
    if (matrices_.elements > 0) {
      b_.transient(Category::workspace, matrix_workspace(matrices_, plan_));
      b_.compute(matrix_products(own_, plan_, divides() ? owners(Group::data) : 1));
    }
    b_.once(1, states());
    // Adam reads weight, gradient and states, and writes all but the gradient.
    b_.compute({sweep(3 * 4 * own + 2 * static_cast<double>(state_bytes(owned())), DType::f32)});
    if (plan_.precision.params != DType::f32)
      b_.compute({sweep((4 + bytes_of(plan_.precision.params)) * own, DType::f32)});
    if (!options_.overlap_param_gather && !options_.shard_parameters) gather_parameters();
    b_.end_phase(Phase::step);
  }

  /// The optimizer is given fp32 gradients, which it has until the next step begins (zero_grad).
  std::vector<Event> widened_gradients() const {
    if (options_.gradients == DType::f32) return {};
    if (keeps_parts()) return shard_tensors(buffers_, Category::workspace, 4);
    if (!divides()) return trainable_tensors(own_, Category::workspace, 4);
    std::vector<Event> whole;
    append_tensors(whole, Category::workspace, round_up(owned() * 4, kAllocationUnit), 1);
    return whole;
  }
  void drop_widened_gradients() {
    for (const Event& e : widened_gradients()) {
      program_.resident.push_back(e);
      b_.begin_repeat(e.count);
      b_.free(e.category, e.bytes);
      b_.from_step(2);
      b_.end_repeat();
    }
  }

  /// As the residents have them.
  std::vector<Event> states() const {
    std::vector<Event> list;
    for (const Event& e : program_.resident)
      if (e.category == Category::optimizer_states) list.push_back(e);
    return list;
  }

  const Model& model_;
  const Plan& plan_;
  const ModelRun& run_;
  const MegatronOptions& options_;
  Program program_;
  std::array<GroupShape, kGroupCount> groups_;
  Stage stage_;
  Model own_;
  Matrices matrices_;                     ///< that Muon takes
  std::vector<GradientBuffers> buffers_;  ///< by chunk
  std::vector<bool> went_back_;           ///< chunks that had a backward pass
  ProgramBuilder b_;
};

}  // namespace

Program lower_megatron(const Model& model, const Plan& plan, const ModelRun& run,
                       std::int64_t rank) {
  return MegatronLowering(model, plan, run, rank).run();
}

}  // namespace shardplan
