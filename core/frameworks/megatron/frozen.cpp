#include "frameworks/megatron/frozen.h"

#include "lowering/pipeline/stages.h"
#include "lowering/tensors.h"

namespace shardplan {

void add_megatron_frozen(Program& program, const KeptWeightsPass& pass) {
  const Parallel& parallel = pass.plan.parallel;
  const std::int64_t ranks = pass.plan.cluster.world() / parallel.pipeline;
  const Stage stage = stage_of(pass.model, parallel, pass.rank / ranks);
  append_parameters(program.resident, parameters_of(pass.model, stage), pass.plan);
}

}  // namespace shardplan
