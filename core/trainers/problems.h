// What a job asks of a trainer and of fused kernels that cannot be run, or not be estimated.
#pragma once

#include <optional>
#include <string_view>

#include "parallel/problem.h"
#include "plan/plan.h"

namespace shardplan {

/// A trainer that cannot run the plan's work or its framework; nothing when it can.
std::optional<DivisionProblem> trainer_problem(const Plan& plan);

/// Kernels that are not for the plan's work, its framework or a model of that type; nothing when
/// they are.
std::optional<DivisionProblem> kernels_problem(const Plan& plan, std::string_view model_type);

}  // namespace shardplan
