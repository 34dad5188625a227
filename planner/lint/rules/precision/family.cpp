#include "lint/rules/precision/family.h"

#include <array>

namespace shardplan::lint_rules::precision {

std::span<const LintRule> all() {
  static const std::array kRules{
      fp32(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all());
}

}  // namespace shardplan::lint_rules::precision
