#include "lowering/lower.h"

#include "frameworks/registry.h"
#include "lowering/inference/generate.h"
#include "parallel/groups.h"
#include "trainers/bookkeeping.h"

namespace shardplan {

Program lower(const Model& model, const Plan& plan, const ModelRun& run, std::int64_t rank) {
  const FrameworkTraits& framework = traits_of(plan);
  Program program = plan.workload.kind == WorkKind::inference
                        ? lower_generation(model, plan)
                        : framework.lower(model, plan, run, rank);
  if (plan.workload.kind == WorkKind::train) add_trainer_work(program, model, plan);
  const HostMemory inputs = framework.inputs_on_host(plan, run);
  program.host.pageable += inputs.pageable;
  program.host.pinned += inputs.pinned;
  program.groups = group_shapes(plan);
  return program;
}

std::vector<std::int64_t> distinct_ranks(const Model& model, const Plan& plan) {
  return traits_of(plan).distinct_ranks(model, plan);
}

}  // namespace shardplan
