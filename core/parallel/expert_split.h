// Experts divided over ranks that route tokens of their own: each sends its tokens to whoever has
// their experts, and gets the results back.
#pragma once

#include "parallel/shard.h"

namespace shardplan {

/// Divides the experts of `model` over plan.parallel.expert ranks, without a limit to what an
/// expert takes. A rank receives plan.parallel.expert_imbalance times the mean.
void split_experts(Model& model, const Plan& plan);

}  // namespace shardplan
