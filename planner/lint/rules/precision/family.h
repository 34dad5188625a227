// fp16, bf16, amp and torch_autocast: what nobody switched on.
#pragma once

#include <span>
#include <vector>

#include "lint/subject.h"

namespace shardplan::lint_rules::precision {

// The rules, one file each.
LintRule fp32();

// In the order in which they are checked, and listed.
std::span<const LintRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::lint_rules::precision
