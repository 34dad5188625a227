// What the configuration asks of this model and this machine.
#pragma once

#include <span>
#include <vector>

#include "lint/subject.h"

namespace shardplan::lint_rules::machine {

// The rules, one file each.
LintRule gpu_no_bf16();
LintRule moe_leaf_modules();

// In the order in which they are checked, and listed.
std::span<const LintRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::lint_rules::machine
