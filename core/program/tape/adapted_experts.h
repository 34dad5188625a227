// Experts whose weights peft adapts (tuners/lora/layer.py, ParamWrapper, peft 0.21): in each pass
// a parametrization adds the product of two factors to all experts' weights, and rows are
// multiplied by what comes out. Time alone: what lives is the graph's.
#pragma once

#include "program/tape/parts.h"

namespace shardplan::tape {

/// Whether `op` is one of the two: the sum, or the product with it.
bool adapts_experts(const Op& op);

void launch_adapted_experts(Parts& parts, const Op& op, DType type);
void launch_adapted_experts_backward(Parts& parts, const Op& op);

}  // namespace shardplan::tape
