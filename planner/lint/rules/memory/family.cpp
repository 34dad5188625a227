#include "lint/rules/memory/family.h"

#include <array>

#include "base/format.h"

namespace shardplan::lint_rules::memory {

Said saved(std::int64_t bytes, const PricedJob& job) {
  return say("{} of {} on each GPU", format_bytes(bytes), format_bytes(job.price().gpu));
}

std::int64_t at_peak(const Estimate& e, Category category) {
  for (const CategoryLine& line : e.breakdown)
    if (line.category == category) return line.at_peak;
  return 0;
}

bool at_least(std::int64_t part, std::int64_t whole, double share) {
  return static_cast<double>(part) >= share * static_cast<double>(whole);
}

std::span<const PricedRule> priced() {
  static const std::array kRules{
      fit_gpu(),          fit_gpu_tight(), estimator_misleads(),
      step_temporaries(), logits(),        fragmentation(),
      bucket(),           fp32(),          activations(),
  };
  return kRules;
}

std::span<const KeyCostRule> of_costs() {
  static const std::array kRules{
      better_value(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(priced(), of_costs());
}

}  // namespace shardplan::lint_rules::memory
