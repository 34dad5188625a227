// What every plan with the same activations and the same computation needs at least, however it
// is sharded, bucketed or offloaded: for searches that rule many plans out at once.
#pragma once

#include <cstdint>

#include "estimate/passes.h"
#include "plan/plan.h"
#include "timing/rates.h"

namespace shardplan {

struct LeastWork {
  /// Peak of what the passes themselves allocate: no gradients, gathers or buckets. Frameworks add
  /// to it and to what they keep between steps.
  std::int64_t activation_bytes = 0;
  /// Of all micro-batches of a step, computation alone; 0: unknown.
  double compute_seconds = 0;
};

/// `passes` of `plan` with no framework around them. Nothing is known of pipelines.
LeastWork least_work(const Plan& plan, const Passes& passes, const TimeRates& rates);

}  // namespace shardplan
