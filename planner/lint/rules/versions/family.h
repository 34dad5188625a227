// Defaults that moved between versions of DeepSpeed.
#pragma once

#include <span>
#include <vector>

#include "lint/subject.h"

namespace shardplan::lint_rules::versions {

// The rules, one file each.
LintRule default_moved();

// In the order in which they are checked, and listed.
std::span<const LintRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::lint_rules::versions
