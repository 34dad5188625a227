#include "lint/rules/degrees/family.h"

namespace shardplan::lint_rules::degrees {

LintRule tensor_ranks() {
  return {
      .rule =
          {
              .id = "parallel.tensor-ranks"_rule,
              .severity = Severity::error,
              .title = "autotp_size does not divide the ranks",
              .explanation = "Tensor-parallel groups have the same size, and every rank is in one.",
              .source = "deepspeed/utils/groups.py _init_tp_groups_with_new_group",
              .advice = "Choose a divisor of the ranks.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const std::int64_t degree = tensor_degree(s), ranks = all_ranks(s);
            if (degree > 1 && ranks > 0 && ranks % degree != 0)
              report(kTensorSize, say("{} does not divide the {} ranks", degree, ranks),
                     divisors(ranks));
          },
  };
}

}  // namespace shardplan::lint_rules::degrees
