#include "lint/rules/degrees/family.h"

namespace shardplan::lint_rules::degrees {

LintRule tensor_uneven() {
  return {
      .rule =
          {
              .id = "parallel.tensor-uneven"_rule,
              .severity = Severity::warning,
              .title = "Heads that tensor parallelism splits unevenly",
              .explanation =
                  "Some ranks get one head more than others: the others wait for them in every "
                  "layer, and they hold more.",
              .source = kTensor,
              .advice = "Choose a divisor of the key-value heads.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const std::int64_t degree = tensor_degree(s), heads = shared_heads(s);
            if (degree > 1 && degree <= heads && heads % degree != 0)
              report(kTensorSize,
                     say("{} does not divide the {} key-value heads: some ranks have {}, "
                         "others {}",
                         degree, heads, heads / degree + 1, heads / degree),
                     divisors(heads));
          },
  };
}

}  // namespace shardplan::lint_rules::degrees
