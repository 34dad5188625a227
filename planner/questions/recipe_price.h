// Whether products in fp8 or fewer bits pay, for the job at hand.
#pragma once

#include <optional>

#include "base/diagnostic.h"
#include "estimate/estimate.h"
#include "load/job.h"

namespace shardplan {

/// A warning where linear layers that multiply in a format of their own make a step slower than it
/// would be without: layers are too small for what casting them costs. `with`: the job's estimate.
std::optional<Diagnostic> recipe_that_loses(const Job& job, const Calibration& calibration,
                                            const Estimate& with);

}  // namespace shardplan
