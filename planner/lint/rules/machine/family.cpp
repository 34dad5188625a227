#include "lint/rules/machine/family.h"

#include <array>

namespace shardplan::lint_rules::machine {

std::span<const LintRule> all() {
  static const std::array kRules{
      gpu_no_bf16(),
      moe_leaf_modules(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all());
}

}  // namespace shardplan::lint_rules::machine
