// PyTorch FSDP1: a flat parameter for each block and one for the rest, gathered before it is used
// (torch/distributed/fsdp/_runtime_utils.py, _flat_param.py of PyTorch 2.11).
// docs/explanation/sharding.md derives what is allocated.
#include "frameworks/fsdp1/lower.h"

#include <algorithm>

#include "frameworks/fsdp1/passes.h"
#include "lowering/library_workspaces.h"
#include "lowering/micro_batches.h"
#include "lowering/optimizer_kernels.h"
#include "lowering/optimizer_memory.h"
#include "lowering/packed_weights.h"
#include "lowering/tensors.h"
#include "program/pinned_memory.h"

namespace shardplan {
namespace {

void emit_micro_batches_of(ProgramBuilder& b, const Fsdp1& f) {
  const bool each = f.plan.syncs_each_batch();
  bool first = true;
  emit_micro_batches(b, f.plan.workload.gradient_accumulation, [&](bool last) {
    Fsdp1Turn turn;
    turn.syncs = each || last;
    turn.first_reduced = !each || first;
    turn.adds_whole = !each && !first;
    turn.finds_gathered = f.sharded && !f.reshards && !each && !first;
    emit_forward_pass(b, f, turn);
    emit_backward_pass(b, f, turn);
    first = false;
  });
}

/// What rank 0's optimizer updates.
std::vector<OwnedTensor> owned_by(const OptimizerTensors& tensors) {
  std::vector<OwnedTensor> owned;
  for (std::size_t i = 0; i < tensors.tensors.size(); ++i)
    owned.push_back({&tensors.tensors[i], tensors.tensors[i].numel, tensors.counts[i]});
  return owned;
}

/// Shards and their gradients are pinned; states are ordinary tensors.
void add_host_states(Program& program, const Fsdp1& f, std::int64_t states) {
  program.host.pinned = f.of_all(
      [&](const FlatUnit& u) { return (u.trains ? 2 : 1) * pinned_block(u.shard * u.each); });
  program.host.pageable = states;
}

/// Where the host is not held back, any number of gathers may be under way, however fast it is
/// taken to be.
std::int64_t held_by_streams(const Fsdp1& f) {
  if (!f.reshards || f.options.limit_all_gathers) return 0;
  constexpr std::int64_t kInTurn = 3;  // as with the limit
  std::int64_t blocks = 0;
  for (const std::int64_t n : f.units.repeats) blocks += n;
  return checked_mul(std::max<std::int64_t>(0, blocks - kInTurn), f.largest_gathered());
}

void free_gradients(ProgramBuilder& b, const Fsdp1& f) {
  if (f.options.cpu_offload) return;  // gone to the host
  b.free(Category::gradients, f.of_trained([&](const FlatUnit& u) {
    return Fsdp1::bytes(f.sharded ? u.shard : u.numel, f.kept(u));
  }));
}

void emit_step(ProgramBuilder& b, const Fsdp1& f, const std::vector<OwnedTensor>& owned,
               const OptimizerMemory& optimizer) {
  b.begin_phase(Phase::step);
  if (f.options.cpu_offload) {
    b.host_optimizer(HostOptimizer::torch, ceil_div(f.model.trainable_count(), f.units.root.ranks));
  } else {
    // FullyShardedDataParallel.clip_grad_norm_: a norm of each tensor, in fp32.
    std::int64_t tensors = 0;
    for (const OwnedTensor& t : owned) tensors += t.count;
    if (f.plan.gradient_clipping > 0) b.transient(Category::workspace, tensors * kAllocationUnit);
    emit_made_states(b, f.plan.optimizer, optimizer);
    emit_temporaries(b, optimizer.temporaries);
    if (f.plan.gradient_clipping > 0)
      b.compute(clipping_kernels(owned, f.plan.precision.gradients));
    b.compute(optimizer_kernels(owned, f.plan.optimizer, f.plan.precision, Given::tensors));
  }
  // zero_grad() reaches views of original parameters only; the flat gradients behind them go when
  // the next forward pass begins (_reset_flat_param_grad_info_if_needed).
  if (!f.options.use_orig_params) free_gradients(b, f);
  b.end_phase(Phase::step);
  if (f.options.use_orig_params) free_gradients(b, f);
}

}  // namespace

Program lower_fsdp1(const Model& whole, const Plan& plan, const ModelRun& run, std::int64_t) {
  // FSDP1 is for bits packed into the type that parameters are gathered in (traits.cpp).
  const PackedWeights packed(whole, plan.precision.compute);
  const Model& model = packed.model();
  Program program = program_of(run);
  ProgramBuilder b(program);
  const Fsdp1 f(model, plan, run);
  const OptimizerTensors tensors = optimizer_tensors(model, f.units, f.options.use_orig_params);
  const std::vector<OwnedTensor> owned = owned_by(tensors);
  const OptimizerMemory optimizer =
      optimizer_memory(owned, plan.optimizer, plan.precision.optimizer_states, Given::tensors);
  program.optimizer_source = states_source(plan.optimizer, Given::tensors);

  add_cublas_workspaces(b, plan.cluster.gpu);
  if (!f.options.cpu_offload) {
    f.for_each([&](const FlatUnit& u, std::int64_t count) {
      b.resident(Category::parameters, f.shard_bytes(u), count);
    });
  }
  packed.append_whole_parts(program.resident);
  b.resident(Category::other, batch_bytes(plan));
  program.model_bytes = total_bytes(program.resident);
  if (f.options.cpu_offload)
    add_host_states(program, f, optimizer.states);
  else
    add_resident_states(program, plan.optimizer, optimizer);
  program.host.pageable += optimizer.paged;
  program.managed = optimizer.paged;
  program.held_at_most = held_by_streams(f);
  program.most_over = most_over_packed(whole, f.options.cpu_offload);
  emit_micro_batches_of(b, f);
  emit_step(b, f, owned, optimizer);
  return program;
}

}  // namespace shardplan
