// What a record says of the host that its step ran on.
#pragma once

#include <optional>

#include "json/document.h"

namespace shardplan {

/// Seconds of a small network's block, forward and backward, between the run's steps
/// (tests/accuracy/measure/shared/host_sample.py): the mean of the slowest rank, for which the others
/// wait. Nothing where none was timed there.
std::optional<double> block_between_steps(const Json& record);

}  // namespace shardplan
