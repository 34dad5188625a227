// What the linter found, for programs.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "lint/lint.h"

namespace shardplan {

/// shardplan.lint/1
Json lint_json(const LintReport& report);

/// SARIF 2.1.0 (OASIS), which code hosts show beside the lines. Every rule is described; places
/// are lines and columns from 1, in code points.
Json lint_sarif(const LintReport& report, std::string_view version);

}  // namespace shardplan
