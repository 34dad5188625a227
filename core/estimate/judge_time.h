// How long an engine takes that judges answers on the trainer's GPUs: docs/explanation/rlhf.md.
#pragma once

#include "estimate/time.h"
#include "lowering/rlhf/roles.h"

namespace shardplan {

/// All answers of an iteration, scored by `rlhf.judge`. No seconds where the GPU has no rates or
/// layers over so many GPUs of an engine are not timed.
TimeEstimate estimate_judge_time(const Rlhf& rlhf, const TimeRates& rates);

}  // namespace shardplan
