// PyTorch FSDP2: fully_shard on every block and on the root, with a mixed-precision policy
// (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py and _fsdp_collectives.py).
#include "frameworks/fsdp2/lower.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "frameworks/fsdp2/gathers.h"
#include "lowering/library_workspaces.h"
#include "lowering/micro_batches.h"
#include "lowering/optimizer_kernels.h"
#include "lowering/optimizer_memory.h"
#include "lowering/packed_weights.h"
#include "lowering/tensors.h"
#include "optimizers/description.h"

namespace shardplan {
namespace {

using Unit = Fsdp2Unit;
using Fsdp = Fsdp2;
using ForwardHooks = Fsdp2Forward;

/// Where a micro-batch stands in an accumulation. Without synchronisation a group's gradients stay
/// whole, in the reduction's type, and later ones are added to them (_fsdp_param.py,
/// to_accumulated_grad_if_needed); the last micro-batch reduces the sums.
struct Turn {
  bool reduces = true;
  bool first_reduction = true;  ///< makes the sharded gradients, to which later ones are added
  bool adds_whole = false;      ///< earlier micro-batches left whole gradients
};

/// Bytes of each tensor's: the caching allocator gives back one after the other.
using Gradients = std::vector<std::int64_t>;

/// Backward: a block's parameters are gathered while the one after it computes; its gradients are
/// reduced when it is done, and the reduction's input stays until the next block's.
struct BackwardHooks {
  const Fsdp& f;
  const std::vector<SegmentRepeat>& repeats;
  Turn turn;
  std::vector<bool> present;  ///< unsharded gradients that exist, by parameter
  const Unit* buffer = nullptr;
  const Unit* unit = nullptr;  ///< the group of this repeat, null in the root
  bool is_block = false;
  const Unit* reducing = nullptr;   ///< whose reduction input is alive
  Gradients gradients;              ///< unsharded, made by the running block
  Gradients expert_gradients;       ///< the same of its experts, which are reduced first
  std::int32_t expert_tensors = 0;  ///< how many have theirs
  bool experts_done = false;
  Gradients root_gradients;

  void enter(ProgramBuilder& b, std::size_t k) {
    unit = f.units.of(repeats[k].segment);
    is_block = f.units.is_block(repeats[k].segment);
    if (unit == nullptr || !unit->reshards || buffer == unit) return;
    f.gather(b, *unit);
    if (buffer != nullptr) f.free_gather(b, *buffer);
    buffer = unit;
  }
  void begin(ProgramBuilder& b) {
    gradients.clear();
    expert_gradients.clear();
    expert_tensors = 0;
    experts_done = false;
    if (unit == nullptr || !unit->reshards) return;
    f.copy_out_again(b, *unit);
    f.free_gather(b, *unit);
    if (is_block)
      f.gather(b, *unit);  // prefetched for the next one
    else
      buffer = nullptr;
  }
  void gradient(ProgramBuilder& b, ParameterId id, std::int64_t bytes) {
    if (unit != nullptr && !unit->experts.empty()) {
      const Unit& experts = unit->experts.front();
      if (f.units.is_expert(id)) return expert_gradient(b, experts, bytes);
      const bool all = experts.trained_tensors > 0 && expert_tensors == experts.trained_tensors;
      if (all) finish_experts(b, experts);
    }
    auto seen = present[static_cast<std::size_t>(id)];
    if (seen && unit == nullptr) {
      b.transient(Category::gradients, bytes);
      return;
    }
    (unit != nullptr ? gradients : root_gradients).push_back(bytes);
    present[static_cast<std::size_t>(id)] = true;
    if (turn.adds_whole && f.r == f.c)  // added to the parameter's own, in place
      b.transient(Category::gradients, bytes);
    else
      b.alloc(Category::gradients, bytes);
  }
  void end(ProgramBuilder& b) {
    if (unit == nullptr) return;
    for (const Unit& experts : unit->experts) finish_experts(b, experts);
    b.free(Category::gathered_parameters, unit->unsharded);
    finish(b, *unit, gradients);
  }

  /// Each layer's own, which share their names.
  void expert_gradient(ProgramBuilder& b, const Unit& experts, std::int64_t bytes) {
    ++expert_tensors;
    if (experts.apart) return keep_gradient(b, bytes);
    if (turn.adds_whole && f.r == f.c)
      b.transient(Category::gradients, bytes);
    else
      b.alloc(Category::gradients, bytes);
    expert_gradients.push_back(bytes);
  }

  /// Where it was made, in the parameter's type: that of the first micro-batch, to which others are
  /// added.
  void keep_gradient(ProgramBuilder& b, std::int64_t bytes) const {
    const std::int64_t kept = bytes / f.c * f.o;
    const std::int64_t cast = f.o == f.c ? 0 : bytes;
    b.alloc(Category::gradients, cast);
    if (turn.first_reduction && !turn.adds_whole)
      b.alloc(Category::gradients, kept);
    else
      b.transient(Category::gradients, kept);
    b.free(Category::gradients, cast);
  }

  /// Their backward pass is over when others' gradients follow; frozen ones stay to the end.
  void finish_experts(ProgramBuilder& b, const Unit& experts) {
    if (std::exchange(experts_done, true)) return;
    b.free(Category::gathered_parameters, experts.unsharded);
    if (!experts.apart) finish(b, experts, expert_gradients);
  }

  /// `made`: gradients in the compute type that this micro-batch made.
  void finish(ProgramBuilder& b, const Unit& g, const Gradients& made) {
    Gradients whole = made;
    for (std::int64_t& bytes : whole) bytes = bytes / f.c * f.r;
    if (f.r != f.c && !made.empty() && (turn.adds_whole || !turn.reduces)) {
      for (std::size_t i = 0; i < made.size(); ++i) {
        if (!turn.adds_whole) b.alloc(Category::gradients, whole[i]);
        b.free(Category::gradients, made[i]);
      }
      const double moved = sum(made) + (turn.adds_whole ? 2 : 1) * sum(whole);
      b.compute({sweep(moved, f.plan.precision.compute, g.trained_tensors)});
    }
    if (turn.reduces) reduce(b, g, turn.adds_whole ? whole : made);
  }

  static double sum(const Gradients& gradients) {
    return static_cast<double>(
        std::accumulate(gradients.begin(), gradients.end(), std::int64_t{0}));
  }

  void reduce(ProgramBuilder& b, const Unit& g, const Gradients& unsharded) {
    if (g.trained == 0) return;  // nothing of it trains
    if (reducing != nullptr) b.free(Category::communication_buffers, f.reduce_bytes(*reducing));
    reducing = &g;
    b.alloc(Category::communication_buffers, f.reduce_bytes(g));
    b.host_work(Issue::hook, 1);
    b.compute({sweep(static_cast<double>(g.trained_bytes + f.reduce_bytes(g)),
                     f.plan.precision.compute, g.trained_tensors)});
    for (const std::int64_t bytes : unsharded) b.free(Category::gradients, bytes);
    if (g.ranks > 1)
      b.collective(Collective::reduce_scatter, g.trained * f.r, "gradient reduce-scatter", 1,
                   g.group);
    if (f.copies > 1)
      b.collective(Collective::all_reduce, g.trained / g.ranks * f.r,
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
  const Unit& root = f.units.root();
  if (!root.tensors.empty()) {
    f.gather(b, root);
    f.copy_out(b, root);
    ahead.buffer = &root;
  }
  emit_forward(b, f.model, f.run, forward, ahead);
  if (ahead.buffer != nullptr) f.free_gather(b, *ahead.buffer);
  if (root.reshards) b.free(Category::gathered_parameters, root.unsharded);
  b.end_phase(Phase::forward);

  // The first block of a repeat has no reduction before it: it stands alone.
  std::vector<SegmentRepeat> backward;
  for (auto s = forward.rbegin(); s != forward.rend(); ++s) {
    if (f.units.is_block(s->segment) && s->count > 1) {
      backward.push_back({s->segment, 1});
      backward.push_back({s->segment, s->count - 1});
    } else {
      backward.push_back(*s);
    }
  }
  BackwardHooks back{f, backward, turn, std::vector<bool>(f.model.parameters.size(), false)};
  b.begin_phase(Phase::backward);
  if (root.reshards && !root.tensors.empty()) {
    f.gather(b, root);
    f.copy_out(b, root);
    f.free_gather(b, root);
  }
  // The first pre-backward hook of a unit that stayed prefetches the last block.
  const auto next = std::find_if(backward.begin(), backward.end(), [&](const SegmentRepeat& s) {
    return f.units.is_block(s.segment) && f.units.of(s.segment) != nullptr;
  });
  if (next != backward.end() && f.units.of(next->segment)->reshards) {
    back.buffer = f.units.of(next->segment);
    f.gather(b, *back.buffer);
  }
  emit_backward(b, f.model, f.run, backward, back);
  if (back.buffer != nullptr) f.free_gather(b, *back.buffer);
  b.free(Category::gathered_parameters, root.unsharded);
  back.finish(b, root, back.root_gradients);
  if (turn.reduces) {
    if (back.reducing != nullptr)
      b.free(Category::communication_buffers, f.reduce_bytes(*back.reducing));
    b.wait(Stream::communication);
    b.free(Category::communication_buffers,
           f.of_all([&](const Unit& g) { return f.summed_bytes(g, turn.first_reduction); }),
           kReducePool);
  }
  b.end_phase(Phase::backward);
}

}  // namespace

Program lower_fsdp2(const Model& whole, const Plan& plan, const ModelRun& run, std::int64_t) {
  Program program = program_of(run);
  ProgramBuilder b(program);
  const PackedWeights packed(whole, plan.precision.compute);
  const Model& model = packed.model();
  const Fsdp f(model, plan, run);
  const bool offload = plan.framework.fsdp2.cpu_offload;
  std::vector<Event> parameters;
  std::int64_t trained = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    const std::int64_t bytes =
        round_up(checked_mul(f.units.shard_of(p), size_of(f.units.type_of(p))), kAllocationUnit);
    append_tensors(parameters, Category::parameters, bytes, repeat);
    if (p.trainable) trained = checked_add(trained, checked_mul(bytes, repeat));
  });
  const std::vector<OwnedTensor> owned =
      trainable_parts(model, [&](const Parameter& p) { return f.units.shard_of(p); });
  const OptimizerMemory optimizer =
      optimizer_memory(owned, plan.optimizer, plan.precision.optimizer_states, Given::shards);
  program.optimizer_source = states_source(plan.optimizer, Given::shards);

  add_cublas_workspaces(b, plan.cluster.gpu);
  if (!offload)
    program.resident.insert(program.resident.end(), parameters.begin(), parameters.end());
  packed.append_whole_parts(program.resident);
  b.resident(Category::other, batch_bytes(plan));
  program.model_bytes = total_bytes(program.resident);
  if (offload) {
    // Shards and gradients are pinned, in blocks of powers of two; states are ordinary tensors.
    program.host.pinned = total_bytes(parameters) + trained;
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
    const std::int64_t gradients = f.of_all([&](const Unit& g) { return f.gradient_bytes(g); });
    if (plan.gradient_clipping > 0)
      b.compute(clipping_kernels(owned, plan.precision.gradients, Issue::sharded));
    b.compute(optimizer_kernels(owned, plan.optimizer, plan.precision, Given::shards));
    b.free(Category::gradients, gradients);
  } else {
    b.host_optimizer(HostOptimizer::torch, model.trainable_count() / plan.shard_ranks());
  }
  b.end_phase(Phase::step);
  return program;
}

}  // namespace shardplan
