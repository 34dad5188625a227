// What a job asks of activation checkpointing that cannot be run, or not be estimated.
#pragma once

#include <optional>

#include "model/model.h"
#include "parallel/problem.h"
#include "plan/plan.h"

namespace shardplan {

/// Nothing when the plan's policy can be run on this model and estimated.
std::optional<DivisionProblem> checkpointing_problem(const Model& model, const Plan& plan);

}  // namespace shardplan
