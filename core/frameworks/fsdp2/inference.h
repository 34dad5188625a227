// Passes without autograd under FSDP2.
#pragma once

#include "lowering/inference/kept_weights.h"

namespace shardplan {

/// Units are gathered and let go as in a training step's forward pass.
std::int64_t emit_fsdp2_inference(ProgramBuilder& b, const KeptWeightsPass& pass);
void add_fsdp2_frozen(Program& program, const KeptWeightsPass& pass);

}  // namespace shardplan
