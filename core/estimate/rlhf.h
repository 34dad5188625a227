// The answer for reinforcement learning and preference training.
#pragma once

#include "estimate/estimate.h"
#include "lowering/rlhf/roles.h"

namespace shardplan {

/// Parameters are those of all models; a step is one iteration.
Estimate estimate_rlhf(const Rlhf& rlhf, const Calibration& calibration);

}  // namespace shardplan
