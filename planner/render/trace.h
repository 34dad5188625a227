// A step as a trace for Perfetto and chrome://tracing (the Trace Event Format).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "program/program.h"
#include "timing/timeline.h"

namespace shardplan {

/// One rank's step: its program and what the simulation noted of it.
struct RankTrace {
  std::int64_t rank = 0;
  const Program* program = nullptr;
  Trace trace;
};

/// A process for each rank with a track for every stream and for the host, a counter of live bytes
/// by category, and an instant where they peak. Times are microseconds from the step's begin.
std::string trace_json(const std::vector<RankTrace>& ranks, std::string_view title);

/// "product 4096×11008×4096 bf16", "attention 32 × 2048 causal".
std::string kernel_label(const Kernel& kernel);

}  // namespace shardplan
