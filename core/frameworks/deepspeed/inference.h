// Weights that nothing trains: whole on the GPU, or under ZeRO-Inference sharded over the GPUs or
// kept on the host or NVMe, and gathered module by module in every pass (DeepSpeed's
// DeepSpeedZeRoOffload: stage 3 without an optimizer).
#pragma once

#include "lowering/inference/kept_weights.h"

namespace shardplan {

std::int64_t emit_deepspeed_inference(ProgramBuilder& b, const KeptWeightsPass& pass);
void add_deepspeed_frozen(Program& program, const KeptWeightsPass& pass);

}  // namespace shardplan
