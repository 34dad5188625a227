// How long an iteration waits for the answers of a rollout engine: docs/explanation/rlhf.md.
#pragma once

#include "estimate/time.h"
#include "lowering/rlhf/roles.h"

namespace shardplan {

/// Waking, taking the trainer's weights and answering what the engine's GPUs ask for in an
/// iteration, every answer at its full length. All zero where that is not known: on GPUs of the
/// engine's own, whose number a job does not say. `handover`: what waking and handing over do to
/// the trainer (lower_rollout).
TimeEstimate estimate_rollout_time(const Rlhf& rlhf, const Program& handover,
                                   const TimeRates& rates);

}  // namespace shardplan
