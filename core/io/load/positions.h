// Sequences of a job against what the model's positions are made for.
#pragma once

#include <optional>
#include <string>

#include "base/diagnostic.h"
#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// A warning where the longest sequence of a job, or one that its engine must take, is longer. An
/// engine that does not start then says how it would.
std::optional<Diagnostic> longer_than_positions(const ModelFacts& facts, const Plan& plan,
                                                const std::string& file);

}  // namespace shardplan
