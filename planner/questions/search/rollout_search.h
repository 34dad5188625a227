// The fastest ways to run an iteration of reinforcement learning that fit: what to write for the
// engine's share of a GPU, its sleep and degree, the micro-batch, and what waits on the host.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "estimate/estimate.h"
#include "questions/search/rollout_space.h"

namespace shardplan {

struct RolloutChoice {
  RolloutPoint point;
  std::int64_t hundredths = 0;  ///< of a GPU's memory, the engine's
  std::vector<FieldEdit> fields;
  Estimate estimate;
};

struct RolloutFound {
  std::optional<Estimate> asked;       ///< the job as it is; none where its engine has no room
  std::vector<RolloutChoice> choices;  ///< the best of each sharing that fits, best first
  /// Of those that were tried where none fits, the one that lacks least.
  std::optional<RolloutChoice> closest;
  std::int64_t tried = 0;  ///< jobs that were estimated
};

/// Of ways that take as long, the one that needs least of a GPU, with the least share for its
/// engine. `load` makes a job of what is written. Exhaustive but for batches and degrees that could
/// not be faster with any share.
RolloutFound search_rollouts(const Json& written, const RolloutSpace& space,
                             const Calibration& calibration,
                             const std::function<Job(const Json&)>& load);

}  // namespace shardplan
