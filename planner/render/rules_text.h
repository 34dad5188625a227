// The linter's rules, for people.
#pragma once

#include <string>

#include "load/ds_config/rule.h"

namespace shardplan {

/// All rules, by family: id, severity and title.
std::string rules_text();

/// docs/reference/lint.md's part that is made from the rules: a table for each family.
std::string rules_markdown();

/// One rule with its explanation, advice and source.
std::string rule_text(const Rule& rule);

}  // namespace shardplan
