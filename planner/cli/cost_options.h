// The terms of a cost as flags.
#pragma once

#include <CLI/CLI.hpp>

#include "questions/cost.h"

namespace shardplan::cli {

/// For an option that takes a number above 0.
CLI::Validator positive_number();

/// --price-per-gpu-hour.
void add_cost_flags(CLI::App& command, CostTerms& terms);

}  // namespace shardplan::cli
