// How long an iteration waits for the answers of a rollout engine: docs/explanation/rlhf.md.
#pragma once

#include "estimate/time.h"
#include "lowering/rlhf/roles.h"

namespace shardplan {

/// What one GPU of the engine takes in an iteration.
struct RolloutTime {
  /// Waking and taking the trainer's weights, while both wait for it.
  TimeEstimate handover;
  /// Every answer at its full length. No seconds where that is not known, with the reason.
  TimeEstimate answers;
  /// Parts in which they end, one after the other; 0: they end at all times.
  double portions = 0;
};

/// `handover`: what waking and handing over do to the trainer (lower_rollout).
RolloutTime estimate_rollout_time(const Rlhf& rlhf, const Program& handover,
                                  const TimeRates& rates);

}  // namespace shardplan
