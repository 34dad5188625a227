// What a record says of the host that its step ran on.
#pragma once

#include <optional>

#include "json/document.h"

namespace shardplan {

/// Seconds of a module's call in Python (data/probe/host.py) on the slowest rank, for which the
/// others wait: the median between its steps, else once in its process, else the machine's probe
/// before the run. Nothing where none was taken.
std::optional<double> python_call_beside(const Json& record);

}  // namespace shardplan
