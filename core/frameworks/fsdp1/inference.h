// Passes without autograd under FSDP1.
#pragma once

#include "lowering/inference/kept_weights.h"

namespace shardplan {

/// Flat parameters are gathered and let go as in a training step's forward pass. The root's stays
/// gathered, for a backward pass that does not come (_runtime_utils.py, _post_forward_reshard).
std::int64_t emit_fsdp1_inference(ProgramBuilder& b, const KeptWeightsPass& pass);
void add_fsdp1_frozen(Program& program, const KeptWeightsPass& pass);

}  // namespace shardplan
