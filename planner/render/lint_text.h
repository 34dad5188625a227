// What the linter found, for people.
#pragma once

#include <string>

#include "lint/lint.h"

namespace shardplan {

/// Findings as file:line:column, what the keys cost, and the counts.
std::string lint_text(const LintReport& report);

}  // namespace shardplan
