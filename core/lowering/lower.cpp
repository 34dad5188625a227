#include "lowering/lower.h"

#include "lowering/inference/generate.h"
#include "lowering/pipeline/stages.h"
#include "lowering/saved_inputs.h"
#include "parallel/groups.h"

namespace shardplan {

namespace {

Program lower_framework(const Model& model, const Plan& plan, const ModelRun& run,
                        std::int64_t rank) {
  switch (plan.framework.kind) {
    case FrameworkKind::single:
    case FrameworkKind::ddp:
      return lower_data_parallel(model, plan, run);
    case FrameworkKind::deepspeed:
      return lower_deepspeed(model, plan, run, rank);
    case FrameworkKind::fsdp2:
      return lower_fsdp2(model, plan, run);
    case FrameworkKind::megatron:
      return lower_megatron(model, plan, run, rank);
    case FrameworkKind::native:
      return lower_native(model, plan, run);
  }
  return {};
}

}  // namespace

Program lower(const Model& model, const Plan& plan, const ModelRun& run, std::int64_t rank) {
  Program program = plan.workload.kind == WorkKind::inference
                        ? lower_generation(model, plan)
                        : lower_framework(model, plan, run, rank);
  add_inputs_on_host(program.host, plan, run);
  program.groups = group_shapes(plan);
  return program;
}

std::vector<std::int64_t> distinct_ranks(const Model& model, const Plan& plan) {
  if (plan.framework.kind == FrameworkKind::deepspeed && plan.parallel.pipeline == 1)
    return distinct_partitions(model, plan);
  std::vector<std::int64_t> ranks;
  for (const std::int64_t stage : distinct_stages(model, plan.parallel))
    ranks.push_back(stage * (plan.cluster.world() / plan.parallel.pipeline));
  return ranks;
}

}  // namespace shardplan
