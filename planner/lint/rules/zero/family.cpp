#include "lint/rules/zero/family.h"

#include <array>

namespace shardplan::lint_rules::zero {

bool shards_on_cluster(const LintSubject& s) {
  return s.cluster != nullptr && s.values.stage() == 3;
}

std::span<const LintRule> all() {
  static const std::array kRules{
      single_rank(),
      hpz_across_nodes(),
      mics_hierarchical(),
      quantized_gradients_one_node(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all());
}

}  // namespace shardplan::lint_rules::zero
