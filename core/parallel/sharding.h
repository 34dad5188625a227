// Which groups a model, a cluster and a framework allow to divide the states over.
#pragma once

#include <optional>
#include <string>

#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// Why a plan's shard groups cannot be, in words for a diagnostic.
struct ShardingProblem {
  std::string key;  ///< of the job
  std::string message;
  std::string expected;
};

/// The first thing that is wrong with hybrid sharding, MiCS or ZeRO++; nothing when all of it can
/// be run and estimated.
std::optional<ShardingProblem> sharding_problem(const Model& model, const Plan& plan);

/// The divisor of `whole` that is nearest to `asked`; of two, the larger.
std::int64_t nearest_divisor(std::int64_t whole, std::int64_t asked);

}  // namespace shardplan
