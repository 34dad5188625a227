#include "frameworks/fsdp2/states.h"

#include "lowering/library_workspaces.h"
#include "lowering/optimizer_kernels.h"
#include "optimizers/description.h"

namespace shardplan {

Fsdp2States fsdp2_states(const Model& model, const Plan& plan, const Fsdp2Units& units) {
  Fsdp2States states;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    const std::int64_t bytes =
        round_up(checked_mul(units.shard_of(p), size_of(units.type_of(p))), kAllocationUnit);
    append_tensors(states.parameters, Category::parameters, bytes, repeat);
    if (p.trainable) states.trained = checked_add(states.trained, checked_mul(bytes, repeat));
  });
  states.owned = trainable_parts(model, [&](const Parameter& p) { return units.shard_of(p); });
  states.optimizer = optimizer_memory(states.owned, plan.optimizer, plan.precision.optimizer_states,
                                      Given::shards);
  return states;
}

void add_fsdp2_states(Program& program, ProgramBuilder& b, const Plan& plan,
                      const Fsdp2States& states, const PackedWeights& packed) {
  const bool offload = plan.framework.fsdp2.cpu_offload;
  program.optimizer_source = states_source(plan.optimizer, Given::shards);
  add_cublas_workspaces(b, plan.cluster.gpu);
  if (!offload)
    program.resident.insert(program.resident.end(), states.parameters.begin(),
                            states.parameters.end());
  packed.append_whole_parts(program.resident);
  b.resident(Category::other, batch_bytes(plan));
  program.model_bytes = total_bytes(program.resident);
  if (offload) {
    // Shards and gradients are pinned, in blocks of powers of two; states are ordinary tensors.
    program.host.pinned = total_bytes(states.parameters) + states.trained;
    program.host.pageable = states.optimizer.states + states.optimizer.paged;
    return;
  }
  b.resident(Category::optimizer_states, states.optimizer.states);
  program.host.pageable = program.managed = states.optimizer.paged;
  if (plan.optimizer.kind->made_when_constructed) program.model_bytes += states.optimizer.states;
}

void emit_fsdp2_step(ProgramBuilder& b, const Model& model, const Plan& plan,
                     const Fsdp2States& states, std::int64_t gradients) {
  b.begin_phase(Phase::step);
  if (!plan.framework.fsdp2.cpu_offload) {
    if (plan.gradient_clipping > 0) b.transient(Category::workspace, clipping_transient(model));
    b.once(1, states.optimizer.tensors);
    emit_temporaries(b, states.optimizer.temporaries);
    if (plan.gradient_clipping > 0)
      b.compute(clipping_kernels(states.owned, plan.precision.gradients, Issue::sharded));
    b.compute(optimizer_kernels(states.owned, plan.optimizer, plan.precision, Given::shards));
    b.free(Category::gradients, gradients);
  } else {
    b.host_optimizer(HostOptimizer::torch, model.trainable_count() / plan.shard_ranks());
  }
  b.end_phase(Phase::step);
}

}  // namespace shardplan
