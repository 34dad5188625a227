// The step program of one rank of our own engine.
#pragma once

#include "lowering/segments.h"

namespace shardplan {

Program lower_native(const Model& model, const Plan& plan, const ModelRun& run, std::int64_t rank);

}  // namespace shardplan
