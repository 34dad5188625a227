// The step program of one rank under FSDP1.
#pragma once

#include "lowering/segments.h"

namespace shardplan {

/// Rank 0's, for every rank: shards are of one size, padding included.
Program lower_fsdp1(const Model& model, const Plan& plan, const ModelRun& run, std::int64_t rank);

}  // namespace shardplan
