// Predicted, planned and measured memory and time, side by side.
#pragma once

#include <string>

#include "estimate/estimate.h"
#include "launch/run.h"

namespace shardplan::validator {

/// A table for people. Without steps there is no measured column.
std::string comparison_text(const EngineJob& job, const Estimate& predicted,
                            const RunReport& report);

/// The same for programs: {"categories": {name: {"predicted", "dry_run", "measured"}}, ...}.
Json comparison_json(const EngineJob& job, const Estimate& predicted, const RunReport& report);

}  // namespace shardplan::validator
