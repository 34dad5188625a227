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
    append_tensors(states.wholes, Category::parameters,
                   round_up(checked_mul(p.numel, size_of(units.type_of(p))), kAllocationUnit),
                   repeat);
    states.block_of.resize(states.wholes.size(),
                           units.block_of(static_cast<ParameterId>(&p - model.parameters.data())));
    if (units.is_narrow(p)) {
      states.narrow_tensors += repeat;
      states.narrow_bytes = checked_add(states.narrow_bytes, checked_mul(bytes, repeat));
    }
    if (p.trainable) states.trained = checked_add(states.trained, checked_mul(bytes, repeat));
  });
  states.owned = trainable_parts(model, [&](const Parameter& p) { return units.shard_of(p); });
  states.optimizer = optimizer_memory(states.owned, plan.optimizer, plan.precision.optimizer_states,
                                      Given::shards);
  return states;
}

namespace {

/// fully_shard moves the tensors of its call to the GPU, makes their shards and drops them when it
/// returns (_fully_shard/_fully_shard.py; _fsdp_param.py, _init_sharded_param). Blocks come before
/// what is left, as accelerate goes over the model (utils/fsdp_utils.py, fsdp2_prepare_model);
/// the rest is taken to be a call a tensor.
std::vector<Event> shard_by_shard(const Fsdp2States& states) {
  std::vector<Event> list;
  const auto call = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) list.push_back(states.wholes[i]);
    for (std::size_t i = begin; i < end; ++i) list.push_back(states.parameters[i]);
    for (std::size_t i = begin; i < end; ++i) {
      list.push_back(states.wholes[i]);
      list.back().kind = Event::Kind::free;
    }
  };
  for (const bool blocks : {true, false})
    for (std::size_t i = 0; i < states.wholes.size();) {
      const std::int32_t block = states.block_of[i];
      std::size_t end = i + 1;
      while (block != kNone && end < states.wholes.size() && states.block_of[end] == block) ++end;
      if ((block != kNone) == blocks) call(i, end);
      i = end;
    }
  return list;
}

}  // namespace

void add_fsdp2_states(Program& program, ProgramBuilder& b, const Plan& plan, const ModelRun& run,
                      const Fsdp2States& states, const PackedWeights& packed) {
  const bool offload = plan.framework.fsdp2.cpu_offload;
  program.optimizer_source = states_source(plan.optimizer, Given::shards);
  add_cublas_workspaces(b, plan.cluster.gpu);
  const auto shards = static_cast<std::ptrdiff_t>(program.resident.size());
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
  if (plan.trainer->keeps_build_cache) {
    program.build = program.resident;
    const auto at = program.build.begin() + shards;
    const std::vector<Event> calls = shard_by_shard(states);
    program.build.insert(program.build.erase(at, at + std::ssize(states.parameters)), calls.begin(),
                         calls.end());
    make_workspaces_in_first_step(b, program.build, run);
  }
  add_resident_states(program, plan.optimizer, states.optimizer);
  program.host.pageable = program.managed = states.optimizer.paged;
}

namespace {

/// The largest values of all weights and an all-reduce of them, then a scale for each (torchao
/// 0.18, float8/fsdp_utils.py, precompute_float8_dynamic_scale_for_fsdp). On a CPU 20 to 28 Python
/// calls a weight, as a list of DTensors takes.
void find_scales(ProgramBuilder& b, const Plan& plan, const Fsdp2States& states) {
  if (plan.framework.fsdp2.float8_all_gather != Float8Gather::precomputed) return;
  b.compute({sweep(static_cast<double>(states.narrow_bytes), plan.precision.params,
                   static_cast<std::int32_t>(states.narrow_tensors), Issue::sharded)});
  b.collective(Collective::all_reduce, kAllocationUnit, "largest values of weights");
}

}  // namespace

void emit_fsdp2_step(ProgramBuilder& b, const Model& model, const Plan& plan,
                     const Fsdp2States& states, std::int64_t gradients) {
  b.begin_phase(Phase::step);
  if (!plan.framework.fsdp2.cpu_offload) {
    if (plan.gradient_clipping > 0) b.transient(Category::workspace, clipping_transient(model));
    emit_made_states(b, plan.optimizer, states.optimizer);
    emit_temporaries(b, states.optimizer.temporaries);
    if (plan.gradient_clipping > 0)
      b.compute(clipping_kernels(states.owned, plan.precision.gradients, Issue::sharded));
    b.compute(optimizer_kernels(states.owned, plan.optimizer, plan.precision, Given::shards));
    b.free(Category::gradients, gradients);
    find_scales(b, plan, states);
  } else {
    b.host_optimizer(HostOptimizer::torch, model.trainable_count() / plan.shard_ranks());
  }
  b.end_phase(Phase::step);
}

}  // namespace shardplan
