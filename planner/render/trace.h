// A step as a trace for Perfetto and chrome://tracing (the Trace Event Format).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "questions/simulate.h"

namespace shardplan {

/// A process for each rank with a track for the phases, for every stream and for the host, a
/// counter of live bytes by category, and an instant where they peak. Times are microseconds from
/// the step's begin.
std::string trace_json(const std::vector<SimulatedRank>& ranks, std::string_view title);

/// "product 4096×11008×4096 bf16", "attention 32 × 2048 causal".
std::string kernel_label(const Kernel& kernel);

}  // namespace shardplan
