#include "frameworks/megatron/saved_inputs.h"

namespace shardplan {

bool distributes_saved_activations(const Plan& plan) {
  return plan.framework.megatron.distribute_saved_activations && plan.parallel.tensor > 1 &&
         !plan.parallel.sequence_parallel && recomputes_whole_layers(plan);
}

bool recomputes_whole_layers(const Plan& plan) {
  return plan.checkpointing == Checkpointing::full || plan.keeps_some_blocks();
}

SavedInput megatron_saved_input(const Plan& plan) {
  if (!recomputes_whole_layers(plan)) return {};
  return {CheckpointFunction::megatron, distributes_saved_activations(plan), plan.parallel.tensor,
          false};
}

}  // namespace shardplan
