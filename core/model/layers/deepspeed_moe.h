// DeepSpeed's own mixture-of-experts layer, deepspeed.moe.layer.MoE of 0.19.6 (moe/sharded_moe.py).
#pragma once

#include "model/layers/experts.h"

namespace shardplan {

/// Routes x [tokens, h] through a layer with a fixed capacity: each of E experts has C = ceil(k ·
/// capacity_factor · tokens / E) slots, filled or not. `weights` are [tokens, k], in fp32.
ValueId deepspeed_moe(Graph& g, const Experts& e, Activation activation, ValueId x,
                      ValueId weights);

}  // namespace shardplan
