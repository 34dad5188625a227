// Models that nothing trains under Megatron-LM.
#pragma once

#include "lowering/inference/kept_weights.h"

namespace shardplan {

/// The parameters of the rank's stage, without buffers or masters (verl, get_model with
/// wrap_with_ddp false).
void add_megatron_frozen(Program& program, const KeptWeightsPass& pass);

}  // namespace shardplan
