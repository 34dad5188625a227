// What a job may ask of the native engine.
#pragma once

#include <optional>

#include "parallel/problem.h"

namespace shardplan {

/// Offloads that do not go together, or that the engine does not have.
std::optional<DivisionProblem> native_options_problem(const Framework& framework);

/// What the engine cannot do: another optimizer than AdamW, autocast, eager attention, some kinds
/// of LoRA. Which networks it runs is the lowering's to say.
std::optional<DivisionProblem> native_plan_problem(const Plan& plan);

/// Heads, widths and rows that the ranks which share each layer do not divide.
std::optional<DivisionProblem> native_sharding_problem(const Model& model, const Plan& plan);

/// Pipelines that the engine does not have.
std::optional<DivisionProblem> native_pipeline_problem(const Plan& plan);

std::optional<DivisionProblem> native_checkpoint_problem(const Plan& plan);

}  // namespace shardplan
