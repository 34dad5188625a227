// What a job may ask of Megatron-LM.
#pragma once

#include <optional>

#include "parallel/problem.h"

namespace shardplan {

/// Options that contradict each other.
std::optional<DivisionProblem> megatron_options_problem(const Framework& framework);

/// What Megatron-LM cannot do with a model like this.
std::optional<DivisionProblem> megatron_sharding_problem(const Model& model, const Plan& plan);

/// What Megatron-LM cannot do.
std::optional<DivisionProblem> megatron_plan_problem(const Plan& plan);

/// Recomputation has one policy with a number: --recompute-method block.
std::optional<DivisionProblem> megatron_checkpoint_problem(const Plan& plan);

}  // namespace shardplan
