// What NeMo RL's workers run of a configuration (7ea279abf).
#pragma once

#include "import/kinds/hydra_config.h"

namespace shardplan::importing::nemo_rl {

/// Framework, degrees, precision, optimizer and checkpointing of the model that trains, under
/// DTensor or Megatron-LM.
void take_workers(const HydraConfig& config);
bool under_megatron(const HydraConfig& config);

/// The engine beside the trainer, and the GPUs that are its own.
void take_rollout(const HydraConfig& config);

/// Lengths, batches, the reference: of the algorithm that the file has a block of.
void take_work(const HydraConfig& config);

}  // namespace shardplan::importing::nemo_rl
