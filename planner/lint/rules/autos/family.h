// "auto" that is found only with the model, or that no trainer is asked for.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lint/subject.h"

namespace shardplan::lint_rules::autos {

inline constexpr std::string_view kTrainer =
    "transformers: integrations/deepspeed.py trainer_config_process, trainer_config_finalize";

// The rules, one file each.
LintRule dropped();
LintRule no_hidden_size();

// In the order in which they are checked, and listed.
std::span<const LintRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::lint_rules::autos
