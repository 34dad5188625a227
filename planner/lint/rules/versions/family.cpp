#include "lint/rules/versions/family.h"

#include <array>

namespace shardplan::lint_rules::versions {

std::span<const LintRule> all() {
  static const std::array kRules{
      default_moved(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all());
}

}  // namespace shardplan::lint_rules::versions
