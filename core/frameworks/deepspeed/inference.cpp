#include "frameworks/deepspeed/inference.h"

#include "frameworks/deepspeed/flat_states.h"
#include "frameworks/deepspeed/gather_hooks.h"
#include "frameworks/deepspeed/stages.h"
#include "frameworks/registry.h"
#include "lowering/inference/pass.h"
#include "lowering/tensors.h"

namespace shardplan {

/// Each pass is a step of the coordinator's (parameter_offload.py, _start_of_forward_hook), which
/// nothing stays behind: no backward pass will want it.
std::int64_t emit_deepspeed_inference(ProgramBuilder& b, const KeptWeightsPass& pass) {
  if (!is_zero3(pass.plan)) return emit_whole_pass(b, pass);
  const Engine engine = engine_of(pass.model, pass.plan);
  const Stage3 z(pass.model, pass.plan, pass.run, engine);
  if (!z.gather.gathers()) return emit_whole_pass(b, pass);
  const GatherSchedule schedule = gather_schedule(z, false);
  GatheredTensors gathered(z, schedule);
  GatherHooks hooks(z, schedule, false, gathered);
  gathered.begin_pass(b, false);
  emit_pass(b, pass.model, pass.run, schedule.repeats(false), hooks);
  gathered.finish(b);
  return 0;
}

void add_deepspeed_frozen(Program& program, const KeptWeightsPass& pass) {
  if (!is_zero3(pass.plan)) return add_whole_weights(program, pass);
  const Engine e = engine_of(pass.model, pass.plan);
  const GatherPlan gather(pass.model, pass.plan, pass.run, e);
  if (!gather.gathers()) return add_whole_weights(program, pass);
  const ShardLayout layout = shard_layout(pass.model, e.ranks);
  if (pass.plan.framework.deepspeed.zero.offload_param.device == OffloadDevice::none)
    append_tensors(program.resident, Category::parameters,
                   checked_mul(e.b, checked_add(layout.trainable, layout.frozen)), 1);
  append_tensors(program.resident, Category::gathered_parameters, gather.persistent_bytes(), 1);
  const std::int64_t states = states_of(e, shards_of(pass.model, e, layout.trainable)).total();
  const HostMemory host = offloaded_stage3(pass.model, pass.plan, e, layout, 0, states);
  program.host.pageable += host.pageable;
  program.host.pinned += host.pinned;
  program.host.nvme += host.nvme;
}

}  // namespace shardplan
