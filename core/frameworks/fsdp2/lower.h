// The step program of one rank under FSDP2.
#pragma once

#include "lowering/segments.h"

namespace shardplan {

Program lower_fsdp2(const Model& model, const Plan& plan, const ModelRun& run, std::int64_t rank);

}  // namespace shardplan
