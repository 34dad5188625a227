// Generation by DeepSpeed-Inference's own kernels (deepspeed.init_inference with
// replace_with_kernel_inject).
#pragma once

#include "lowering/inference/pass.h"
#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

/// Weights, one workspace with the KV cache in it, and the logits of one position.
Program lower_injected(const Model& model, const Plan& plan);

/// One pass alone, for time.
Program lower_injected_pass(const Model& model, const Plan& plan, const Pass& pass,
                            const Pass* before);

/// Bytes of the weights on one GPU: the blocks' linear layers are cut, all else is replicated.
std::int64_t injected_weight_bytes(const Model& model, const Plan& plan);

}  // namespace shardplan
