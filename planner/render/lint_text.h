// What the linter found, for people.
#pragma once

#include <string>

#include "lint/lint.h"

namespace shardplan {

/// Findings as file:line:column, what the keys cost, and the counts.
std::string lint_text(const LintReport& report);

/// All rules, by family: id, severity and title.
std::string rules_text();

/// docs/reference/lint.md's part that is made from the rules.
std::string rules_markdown();

}  // namespace shardplan
