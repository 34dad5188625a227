// What cannot be run, or not be estimated, under FSDP2.
#pragma once

#include <optional>

#include "parallel/problem.h"
#include "plan/plan.h"

namespace shardplan {

std::optional<DivisionProblem> fsdp2_plan_problem(const Plan& plan);
/// Of the groups that divide a network's states, and of its layers among them.
std::optional<DivisionProblem> fsdp2_division_problem(const Model& model, const Plan& plan);

}  // namespace shardplan
