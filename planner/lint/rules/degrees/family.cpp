#include "lint/rules/degrees/family.h"

#include <fmt/format.h>
#include <array>

namespace shardplan::lint_rules::degrees {

std::int64_t all_ranks(const LintSubject& s) {
  if (s.cluster != nullptr) return s.cluster->world();
  return s.accelerate != nullptr ? s.accelerate->processes.value_or(0) : 0;
}

std::int64_t tensor_degree(const LintSubject& s) {
  return s.values.integer(kTensorSize);
}

std::int64_t sequence_degree(const LintSubject& s) {
  return s.values.maybe_integer(kSequenceSize).value_or(1);
}

ModelFacts facts_of(const LintSubject& s) {
  return s.model == nullptr ? ModelFacts{} : s.model->facts;
}

std::int64_t shared_heads(const LintSubject& s) {
  const ModelFacts facts = facts_of(s);
  return facts.key_value_heads > 0 ? facts.key_value_heads : facts.attention_heads;
}

Said divisors(std::int64_t n) {
  std::vector<std::int64_t> all;
  for (std::int64_t d = 1; d <= n; ++d)
    if (n % d == 0) all.push_back(d);
  if (all.size() == 1) return "1";
  const std::int64_t last = all.back();
  all.pop_back();
  return say("{} or {}", fmt::join(all, ", "), last);
}

std::span<const LintRule> all() {
  static const std::array kRules{
      tensor_ranks(),   tensor_heads(),   tensor_uneven(),   tensor_across_nodes(),
      pipeline_ranks(), pipeline_empty(), pipeline_uneven(), pipeline_bubble(),
      sequence_heads(), expert_dense(),   expert_count(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all());
}

}  // namespace shardplan::lint_rules::degrees
