#include "lint/rules/degrees/family.h"
#include "parallel/degrees.h"

namespace shardplan::lint_rules::degrees {

LintRule expert_count() {
  return {
      .rule =
          {
              .id = "parallel.expert-count"_rule,
              .severity = Severity::error,
              .title = "autoep_size does not divide the experts",
              .explanation =
                  "Every rank owns the same number of experts of each layer, and at least one.",
              .source = kExperts,
              .advice = "Choose a divisor of the experts.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.model == nullptr || !s.values.flag("expert_parallel.enabled")) return;
            const std::int64_t degree = s.values.integer(kExpertSize),
                               count = expert_count(*s.model);
            if (degree > 0 && count % degree != 0)
              report(kExpertSize, say("{} does not divide the {} experts", degree, count),
                     divisors(count));
          },
  };
}

}  // namespace shardplan::lint_rules::degrees
