// What an estimate of a compiled step rests on where no run, or few, have confirmed it.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace shardplan {

struct Model;

/// Sentences for an answer's list of assumptions; empty where the plan does not compile, or many
/// runs have confirmed what it compiles.
std::vector<std::string> compile_assumptions(const Model& model, const Plan& plan);

/// What people should know of the step; empty where there is nothing.
std::string compile_warning(const Model& model, const Plan& plan);

}  // namespace shardplan
