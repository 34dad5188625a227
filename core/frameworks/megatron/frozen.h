// Passes without autograd, and models that nothing trains, under Megatron-LM.
#pragma once

#include "lowering/inference/kept_weights.h"

namespace shardplan {

/// A pass over the rank's stage: of the network's logits only the last one knows.
std::int64_t emit_megatron_pass(ProgramBuilder& b, const KeptWeightsPass& pass);

/// The parameters of the rank's stage, without buffers or masters (verl, get_model with
/// wrap_with_ddp false).
void add_megatron_frozen(Program& program, const KeptWeightsPass& pass);

}  // namespace shardplan
