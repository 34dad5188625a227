// What a record says of the host that its step ran on.
#pragma once

#include <optional>

#include "json/document.h"

namespace shardplan {

/// Seconds of a module's call in Python (data/probe/host.py) between the run's steps, in the mean,
/// on the slowest rank, for which the others wait. Nothing where none was timed there.
std::optional<double> python_call_between_steps(const Json& record);

}  // namespace shardplan
