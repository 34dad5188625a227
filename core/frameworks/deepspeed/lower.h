// The step program of one rank under DeepSpeed.
#pragma once

#include <vector>

#include "lowering/segments.h"

namespace shardplan {

Program lower_deepspeed(const Model& model, const Plan& plan, const ModelRun& run,
                        std::int64_t rank);

/// Ranks of one ZeRO partition group that may differ, or of pipeline stages.
std::vector<std::int64_t> deepspeed_distinct_ranks(const Model& model, const Plan& plan);

}  // namespace shardplan
