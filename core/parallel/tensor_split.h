// Tensor parallelism: one rank's part of every layer, and what the ranks exchange between them.
#pragma once

#include "frameworks/traits.h"
#include "parallel/shard.h"

namespace shardplan {

/// Divides `model` over plan.parallel.tensor ranks, tokens between the layers too where
/// plan.parallel.sequence_parallel says so.
void split_tensors(Model& model, const Plan& plan, SplitStyle style);

}  // namespace shardplan
