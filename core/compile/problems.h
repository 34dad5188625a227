// Compiled steps that cannot be run, or not be estimated.
#pragma once

#include <optional>

#include "parallel/problem.h"
#include "plan/plan.h"

namespace shardplan {

/// What is wrong with asking for torch.compile in this plan; nothing where it does not ask.
std::optional<DivisionProblem> compile_problem(const Model& model, const Plan& plan);

}  // namespace shardplan
