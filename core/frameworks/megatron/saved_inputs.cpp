#include "frameworks/megatron/saved_inputs.h"

namespace shardplan {

bool distributes_saved_activations(const Plan& plan) {
  return plan.framework.megatron.distribute_saved_activations && plan.parallel.tensor > 1 &&
         !plan.parallel.sequence_parallel && plan.checkpointing == Checkpointing::full;
}

SavedInput megatron_saved_input(const Plan& plan) {
  if (plan.checkpointing != Checkpointing::full) return {};
  return {CheckpointFunction::megatron, distributes_saved_activations(plan), plan.parallel.tensor,
          false};
}

}  // namespace shardplan
