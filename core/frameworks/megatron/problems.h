// What a job may ask of Megatron-LM.
#pragma once

#include <optional>

#include "parallel/problem.h"

namespace shardplan {

/// Options that contradict each other.
std::optional<DivisionProblem> megatron_options_problem(const Framework& framework);

/// What Megatron-LM cannot do.
std::optional<DivisionProblem> megatron_plan_problem(const Plan& plan);

}  // namespace shardplan
