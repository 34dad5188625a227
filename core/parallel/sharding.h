// Which groups a model, a cluster and a framework allow to divide the states over.
#pragma once

#include <cstdint>
#include <optional>

#include "parallel/problem.h"

namespace shardplan {

/// The first thing that is wrong with hybrid sharding, MiCS, ZeRO++ or DeepSpeed's experts, which
/// the framework's options decide about; nothing when all of it can be run and estimated.
std::optional<DivisionProblem> sharding_problem(const Model& model, const Plan& plan);

/// The divisor of `whole` that is nearest to `asked`; of two, the larger.
std::int64_t nearest_divisor(std::int64_t whole, std::int64_t asked);

}  // namespace shardplan
