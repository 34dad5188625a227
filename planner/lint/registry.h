// Every rule of the linter, by family.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lint/subject.h"
#include "load/ds_config/rule.h"

namespace shardplan {

/// Rules of one subject: those that are found where a ds_config is read (load/ds_config/rules),
/// then those that only the linter looks for (lint/rules).
struct RuleFamily {
  std::string_view name;
  std::vector<Rule> rules;
  std::span<const LintRule> looked_for;
  std::span<const PricedRule> priced;  ///< after the others of the family
};

std::span<const RuleFamily> rule_families();

/// nullptr for a name that no rule has.
const Rule* find_rule(RuleId id);
const Rule* find_rule(std::string_view id);

}  // namespace shardplan
