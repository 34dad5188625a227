// Which degrees a model, a cluster and a framework allow.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// Why a plan's division over GPUs cannot be, in words for a diagnostic.
struct DegreeProblem {
  std::string_view key;  ///< of the job's `parallel`
  std::string message;
  std::string expected;  ///< the nearest degree that would do, or what would
};

/// The first thing that is wrong with plan.parallel; nothing when it can be run and estimated.
std::optional<DegreeProblem> degree_problem(const Model& model, const Plan& plan);

/// The blocks that pipeline stages share out.
std::int64_t block_count(const Model& model);
/// The experts of a sparse layer; 0 in a dense model.
std::int64_t expert_count(const Model& model);

}  // namespace shardplan
