#include "lint/rules/autos/family.h"

#include <array>

namespace shardplan::lint_rules::autos {

std::span<const LintRule> all() {
  static const std::array kRules{
      dropped(),
      no_hidden_size(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all());
}

}  // namespace shardplan::lint_rules::autos
