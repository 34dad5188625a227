// PyTorch FSDP2: fully_shard on every block and on the root, with a mixed-precision policy
// (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py and _fsdp_collectives.py).
#include "frameworks/fsdp2/lower.h"

#include <algorithm>

#include "lowering/library_workspaces.h"
#include "lowering/micro_batches.h"
#include "lowering/optimizer_kernels.h"
#include "lowering/optimizer_memory.h"
#include "lowering/tensors.h"
#include "optimizers/description.h"

namespace shardplan {
namespace {

/// The parameters of one fully_shard call: a block, or what is left for the root.
struct Units {
  std::int64_t elements = 0;          ///< padded along dimension 0 to a multiple of the world
  std::int64_t unsharded_bytes = 0;   ///< separate tensors in the compute type
  std::vector<std::int64_t> tensors;  ///< their bytes, one by one
};

/// The streams that allocate: all_gather_copy_in_stream and reduce_scatter_stream.
constexpr Stream kGatherPool = Stream::copy;
constexpr Stream kReducePool = Stream::communication;

struct Fsdp {
  const Model& model;
  const Plan& plan;
  const ModelRun& run;
  std::int64_t world;    ///< ranks that divide one copy of the states
  std::int64_t copies;   ///< of them, under hybrid sharding
  std::int64_t c, r, o;  ///< bytes an element: compute, reduction, sharded original
  bool reshard;
  std::vector<Units> blocks;  ///< by segment; empty for segments of the root
  Units root;

  Fsdp(const Model& model_, const Plan& plan_, const ModelRun& run_)
      : model(model_),
        plan(plan_),
        run(run_),
        world(plan_.shard_ranks()),
        copies(plan_.copies()),
        c(size_of(plan_.precision.compute)),
        r(plan_.framework.fsdp2.reduce_dtype ? size_of(*plan_.framework.fsdp2.reduce_dtype) : c),
        o(size_of(plan_.precision.params)),
        reshard(plan_.framework.fsdp2.reshard_after_forward),
        blocks(run_.segments.size()) {
    std::vector<bool> in_block(model.parameters.size(), false);
    for (std::size_t s = 0; s < run.segments.size(); ++s) {
      if (!is_block(s)) continue;
      for (const Op& op : run.segments[s].segment->graph.ops())
        for (const ParameterId id : {op.weight, op.bias}) {
          if (id == kNone || in_block[static_cast<std::size_t>(id)]) continue;
          in_block[static_cast<std::size_t>(id)] = true;
          add(blocks[s], id);
        }
    }
    for (const ParameterGroup& g : model.groups)
      for (std::int32_t i = g.first; i < g.first + g.count; ++i)
        if (!in_block[static_cast<std::size_t>(i)])
          for (std::int64_t k = 0; k < g.repeat; ++k) add(root, i);
  }

  bool is_block(std::size_t segment) const { return run.segments[segment].segment->checkpointable; }

  void add(Units& group, ParameterId id) const {
    const Parameter& p = model.parameters[static_cast<std::size_t>(id)];
    group.elements += checked_mul(shard_elements(p, world), world);
    group.tensors.push_back(round_up(checked_mul(p.numel, c), kAllocationUnit));
    group.unsharded_bytes += group.tensors.back();
  }

  std::int64_t gather_bytes(const Units& g) const {
    return round_up(g.elements * c, kAllocationUnit);
  }
  /// All-gather: the cast shards and the buffer, on the copy-in stream; then copied out to separate
  /// tensors.
  void gather(ProgramBuilder& b, const Units& g) const {
    const std::int64_t cast = c != o ? round_up(gather_bytes(g) / world, kAllocationUnit) : 0;
    b.alloc(Category::communication_buffers, cast, kGatherPool);
    b.alloc(Category::communication_buffers, gather_bytes(g), kGatherPool);
    b.free(Category::communication_buffers, cast, kGatherPool);
    b.host_work(Issue::hook, 1);
    if (plan.framework.fsdp2.cpu_offload)
      b.fetch_ahead(LinkKind::host, g.elements / world * o, "parameter shards to the GPU");
    if (world > 1) b.gather_ahead(g.elements * c, "parameter all-gather", group());
  }
  Group group() const { return copies > 1 ? Group::shard : Group::data; }
  void copy_out(ProgramBuilder& b, const Units& g) const {
    for (const std::int64_t bytes : g.tensors) b.alloc(Category::gathered_parameters, bytes);
    b.wait(Stream::communication);
    b.compute({sweep(2.0 * static_cast<double>(g.unsharded_bytes), plan.precision.compute,
                     static_cast<std::int32_t>(g.tensors.size()))});
  }
  void free_gather(ProgramBuilder& b, const Units& g) const {
    b.free(Category::communication_buffers, gather_bytes(g), kGatherPool);
  }
  std::int64_t reduce_bytes(const Units& g) const {
    return round_up(g.elements * r, kAllocationUnit);
  }
  std::int64_t gradient_bytes(const Units& g) const {
    return round_up(g.elements / world * o, kAllocationUnit);
  }
  /// Over the root and all blocks.
  template <typename Bytes>
  std::int64_t of_all(Bytes&& bytes) const {
    std::int64_t sum = bytes(root);
    for (std::size_t s = 0; s < blocks.size(); ++s)
      if (is_block(s)) sum += run.segments[s].segment->repeat * bytes(blocks[s]);
    return sum;
  }
  /// What a reduction leaves in the reduction's type, where that is not the gradient's own.
  std::int64_t reduced_bytes(const Units& g) const {
    return r != o ? round_up(g.elements / world * r, kAllocationUnit) : 0;
  }
  /// Hybrid sharding sums what is reduced over the copies on another stream, and each group keeps
  /// that sum until the backward pass ends (_fsdp_param_group.py _all_reduce_state). `first`: the
  /// micro-batch whose sums, if they have the type, are the gradients themselves.
  std::int64_t summed_bytes(const Units& g, bool first) const {
    if (copies == 1) return 0;
    if (r != o) return reduced_bytes(g);
    return first && !plan.framework.fsdp2.cpu_offload ? 0 : gradient_bytes(g);
  }
};

/// Where a micro-batch stands in an accumulation. Without synchronisation a group's gradients stay
/// whole, in the reduction's type, and later ones are added to them (_fsdp_param.py,
/// to_accumulated_grad_if_needed); the last micro-batch reduces the sums.
struct Turn {
  bool reduces = true;
  bool first_reduction = true;  ///< makes the sharded gradients, to which later ones are added
  bool adds_whole = false;      ///< earlier micro-batches left whole gradients
};

/// Forward: a group's gather buffer stays until the next group has gathered its own.
struct ForwardHooks {
  const Fsdp& f;
  const std::vector<SegmentRepeat>& repeats;
  const Units* buffer = nullptr;  ///< whose gather buffer is alive
  const Units* block = nullptr;   ///< the group of this repeat, null outside blocks

  void enter(ProgramBuilder& b, std::size_t k) {
    const std::size_t s = repeats[k].segment;
    block = f.is_block(s) ? &f.blocks[s] : nullptr;
    if (block == nullptr) return;
    f.gather(b, *block);
    if (buffer != nullptr) f.free_gather(b, *buffer);
    buffer = block;
  }
  void begin(ProgramBuilder& b) {
    if (block != nullptr) f.copy_out(b, *block);
  }
  void end(ProgramBuilder& b) {
    if (block == nullptr) return;
    if (f.reshard) b.free(Category::gathered_parameters, block->unsharded_bytes);
    f.gather(b, *block);  // the next one's
    f.free_gather(b, *block);
  }
};

/// Backward: a block's parameters are gathered while the one after it computes; its gradients are
/// reduced when it is done, and the reduction's input stays until the next block's.
struct BackwardHooks {
  const Fsdp& f;
  const std::vector<SegmentRepeat>& repeats;
  Turn turn;
  std::vector<bool> present;  ///< unsharded gradients that exist, by parameter
  const Units* buffer = nullptr;
  const Units* block = nullptr;
  const Units* reducing = nullptr;  ///< whose reduction input is alive
  std::int64_t gradients = 0;       ///< unsharded, made by the running block
  std::int64_t root_gradients = 0;

  void enter(ProgramBuilder& b, std::size_t k) {
    const std::size_t s = repeats[k].segment;
    block = f.is_block(s) ? &f.blocks[s] : nullptr;
    if (block == nullptr || !f.reshard || buffer == block) return;
    f.gather(b, *block);
    if (buffer != nullptr) f.free_gather(b, *buffer);
    buffer = block;
  }
  void begin(ProgramBuilder& b) {
    gradients = 0;
    if (block == nullptr || !f.reshard) return;
    f.copy_out(b, *block);
    f.free_gather(b, *block);
    f.gather(b, *block);  // prefetched for the next one
  }
  void gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) {
    auto seen = present[static_cast<std::size_t>(id)];
    if (seen && block == nullptr) {
      b.transient(Category::gradients, bytes);
      return;
    }
    (block != nullptr ? gradients : root_gradients) += bytes;
    present[static_cast<std::size_t>(id)] = true;
    if (turn.adds_whole && f.r == f.c)  // added to the parameter's own, in place
      b.transient(Category::gradients, bytes);
    else
      b.alloc(Category::gradients, bytes);
  }
  void end(ProgramBuilder& b) {
    if (block == nullptr) return;
    b.free(Category::gathered_parameters, block->unsharded_bytes);
    finish(b, *block, gradients);
  }

  /// `made`: bytes of gradients in the compute type that this micro-batch made.
  void finish(ProgramBuilder& b, const Units& g, std::int64_t made) {
    const std::int64_t whole = f.r == f.c ? made : made / f.c * f.r;
    if (f.r != f.c && (turn.adds_whole || !turn.reduces)) {
      if (!turn.adds_whole) b.alloc(Category::gradients, whole);
      b.compute({sweep(static_cast<double>(made + (turn.adds_whole ? 2 : 1) * whole),
                       f.plan.precision.compute, static_cast<std::int32_t>(g.tensors.size()))});
      b.free(Category::gradients, made);
    }
    if (turn.reduces) reduce(b, g, turn.adds_whole ? whole : made);
  }

  void reduce(ProgramBuilder& b, const Units& g, std::int64_t unsharded) {
    if (reducing != nullptr) b.free(Category::communication_buffers, f.reduce_bytes(*reducing));
    reducing = &g;
    b.alloc(Category::communication_buffers, f.reduce_bytes(g));
    b.host_work(Issue::hook, 1);
    b.compute({sweep(static_cast<double>(g.unsharded_bytes + f.reduce_bytes(g)),
                     f.plan.precision.compute, static_cast<std::int32_t>(g.tensors.size()))});
    b.free(Category::gradients, unsharded);
    if (f.world > 1)
      b.collective(Collective::reduce_scatter, g.elements * f.r, "gradient reduce-scatter", 1,
                   f.group());
    if (f.copies > 1)
      b.collective(Collective::all_reduce, g.elements / f.world * f.r,
                   "gradient all-reduce over copies", 1, Group::replica);
    const std::int64_t part = f.gradient_bytes(g);
    const std::int64_t reduced = f.reduced_bytes(g);
    const bool offloads = f.plan.framework.fsdp2.cpu_offload;
    b.alloc(Category::communication_buffers, reduced, kReducePool);
    if (offloads) b.copy(LinkKind::host, false, part, "gradient shards to the host");
    if (turn.first_reduction && !offloads) {
      b.alloc(Category::gradients, part, kReducePool);
    } else {
      b.transient(Category::gradients, part, kReducePool);
    }
    b.free(Category::communication_buffers, reduced, kReducePool);
    b.alloc(Category::communication_buffers, f.summed_bytes(g, turn.first_reduction), kReducePool);
  }
};

void emit_micro_batch(ProgramBuilder& b, const Fsdp& f, const Turn& turn) {
  const std::vector<SegmentRepeat> forward = whole_segments(f.run);
  ForwardHooks ahead{f, forward};
  b.begin_phase(Phase::forward);
  f.gather(b, f.root);
  f.copy_out(b, f.root);
  ahead.buffer = &f.root;
  emit_forward(b, f.model, f.run, forward, ahead);
  f.free_gather(b, *ahead.buffer);
  if (f.reshard) b.free(Category::gathered_parameters, f.root.unsharded_bytes);
  b.end_phase(Phase::forward);

  // The first block of a repeat has no reduction before it: it stands alone.
  std::vector<SegmentRepeat> backward;
  for (auto s = forward.rbegin(); s != forward.rend(); ++s) {
    if (f.is_block(s->segment) && s->count > 1) {
      backward.push_back({s->segment, 1});
      backward.push_back({s->segment, s->count - 1});
    } else {
      backward.push_back(*s);
    }
  }
  BackwardHooks back{f, backward, turn, std::vector<bool>(f.model.parameters.size(), false)};
  b.begin_phase(Phase::backward);
  if (f.reshard) {
    f.gather(b, f.root);
    f.copy_out(b, f.root);
    f.free_gather(b, f.root);
    const auto next = std::find_if(backward.begin(), backward.end(),
                                   [&](const SegmentRepeat& s) { return f.is_block(s.segment); });
    if (next != backward.end()) {
      back.buffer = &f.blocks[next->segment];
      f.gather(b, *back.buffer);
    }
  }
  emit_backward(b, f.model, f.run, backward, back);
  if (back.buffer != nullptr) f.free_gather(b, *back.buffer);
  b.free(Category::gathered_parameters, f.root.unsharded_bytes);
  back.finish(b, f.root, back.root_gradients);
  if (turn.reduces) {
    b.free(Category::communication_buffers, f.reduce_bytes(f.root));
    b.wait(Stream::communication);
    b.free(Category::communication_buffers,
           f.of_all([&](const Units& g) { return f.summed_bytes(g, turn.first_reduction); }),
           kReducePool);
  }
  b.end_phase(Phase::backward);
}

}  // namespace

Program lower_fsdp2(const Model& model, const Plan& plan, const ModelRun& run, std::int64_t) {
  Program program = program_of(run);
  ProgramBuilder b(program);
  const Fsdp f(model, plan, run);
  const bool offload = plan.framework.fsdp2.cpu_offload;
  std::vector<Event> parameters;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    append_tensors(parameters, Category::parameters,
                   round_up(checked_mul(shard_elements(p, f.world), f.o), kAllocationUnit), repeat);
  });
  const std::int64_t shards = total_bytes(parameters);
  const OptimizerMemory optimizer =
      optimizer_memory(trainable_shards(model, f.world), plan.optimizer,
                       plan.precision.optimizer_states, Given::shards);
  program.optimizer_source = states_source(plan.optimizer, Given::shards);

  add_cublas_workspaces(b, plan.cluster.gpu);
  if (!offload)
    program.resident.insert(program.resident.end(), parameters.begin(), parameters.end());
  b.resident(Category::other, batch_bytes(plan));
  program.model_bytes = total_bytes(program.resident);
  if (offload) {
    // Shards and gradients are pinned, in blocks of powers of two; states are ordinary tensors.
    program.host.pinned = 2 * shards;
    program.host.pageable = optimizer.states + optimizer.paged;
  } else {
    b.resident(Category::optimizer_states, optimizer.states);
    program.host.pageable = program.managed = optimizer.paged;
    if (plan.optimizer.kind->made_when_constructed) program.model_bytes += optimizer.states;
  }

  bool first = true;
  const bool each = plan.syncs_each_batch();
  emit_micro_batches(b, plan.workload.gradient_accumulation, [&](bool last) {
    emit_micro_batch(b, f, {each || last, !each || first, !each && !first});
    first = false;
  });
  b.begin_phase(Phase::step);
  if (!offload) {
    if (plan.gradient_clipping > 0) b.transient(Category::workspace, clipping_transient(model));
    b.once(1, optimizer.tensors);
    emit_temporaries(b, optimizer.temporaries);
    const std::int64_t gradients = f.of_all([&](const Units& g) { return f.gradient_bytes(g); });
    const std::vector<OwnedTensor> owned = trainable_shards(model, f.world);
    if (plan.gradient_clipping > 0)
      b.compute(clipping_kernels(owned, plan.precision.gradients, Issue::sharded));
    b.compute(optimizer_kernels(owned, plan.optimizer, plan.precision, Given::shards));
    b.free(Category::gradients, gradients);
  } else {
    b.host_optimizer(HostOptimizer::torch, model.trainable_count() / f.world);
  }
  b.end_phase(Phase::step);
  return program;
}

}  // namespace shardplan
