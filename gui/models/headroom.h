// How far the micro-batch of a job can go.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>

#include "estimate/calibration.h"
#include "load/job.h"

namespace shardplan::gui {

/// The largest micro-batches with which a job fits, all else as it is.
struct Headroom {
  std::optional<std::int64_t> surely;    ///< by the upper bound; none: not even with 1
  std::optional<std::int64_t> probably;  ///< by the point estimate
};

/// Nothing for what trains no micro-batches of one model, for a plan that cannot be estimated with
/// others, and when it was asked to stop.
std::optional<Headroom> headroom_of(const Job& job, const Calibration& calibration,
                                    const std::stop_token& stop);

}  // namespace shardplan::gui
