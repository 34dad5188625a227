// Whether a model, a cluster and a framework allow a plan's division over GPUs.
#pragma once

#include <optional>
#include <string>

#include "base/said.h"
#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// Why a division cannot be, in words for a diagnostic.
struct DivisionProblem {
  std::string key;  ///< of the job
  Said message;
  std::string expected;  ///< the nearest value that would do, or what would
};

/// The first thing that is wrong with the plan's degrees (degrees.h), then with its shard groups
/// (sharding.h); nothing when it can be run and estimated. What the loader refuses, no question
/// may answer with.
std::optional<DivisionProblem> division_problem(const Model& model, const Plan& plan);

}  // namespace shardplan
