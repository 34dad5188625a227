// Samples of several lengths: the longest batch that a loader makes decides the peak, the typical
// one the time.
#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace shardplan {

/// What a step of batches that are neither short nor long computes on.
struct TypicalStep {
  std::int64_t tokens = 0;     ///< of each sample as it is padded
  double counted = 1;          ///< what share of them is no padding
  std::int64_t allocated = 0;  ///< peak of live tensors, filled in by estimate()
};

/// Of a plan with lengths. Packed rows are full. A padded batch is as long as its longest sample:
/// the expected maximum over a micro-batch, and because GPUs wait for each other part of the way to
/// the maximum over all GPUs' samples: all of it for one micro-batch a step, less in proportion to
/// the root of their number.
TypicalStep typical_step(const Plan& plan);

/// The plan whose samples all have the typical length.
Plan plan_of_typical_step(const Plan& plan, const TypicalStep& typical);

}  // namespace shardplan
