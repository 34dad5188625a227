// The step program of one rank under Megatron-LM.
#pragma once

#include "lowering/segments.h"

namespace shardplan {

Program lower_megatron(const Model& model, const Plan& plan, const ModelRun& run,
                       std::int64_t rank);

}  // namespace shardplan
