#pragma once

#include <cstdint>

#include "lowering/segments.h"
#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// Bytes that a compiled step may reserve on top because it makes the 16-bit copies of all blocks'
/// weights before it computes the first block again; for upper bounds.
std::int64_t copies_ahead_at_most(const Model& model, const Plan& plan, const ModelRun& run);

}  // namespace shardplan
