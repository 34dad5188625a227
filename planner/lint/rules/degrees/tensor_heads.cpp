#include "lint/rules/degrees/family.h"

namespace shardplan::lint_rules::degrees {

LintRule tensor_heads() {
  return {
      .rule =
          {
              .id = "parallel.tensor-heads"_rule,
              .severity = Severity::error,
              .title = "More tensor-parallel ranks than heads",
              .explanation =
                  "AutoTP distributes whole heads of keys and values; the remaining ranks get "
                  "projections without rows, and attention cannot shape their output.",
              .source = kTensor,
              .advice = "Use a degree of at most the key-value heads.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const std::int64_t degree = tensor_degree(s), heads = shared_heads(s);
            if (degree > 1 && heads > 0 && degree > heads)
              report(kTensorSize,
                     say("{} ranks share {} key-value heads, and {} get none", degree, heads,
                         degree - heads),
                     say("at most {}", heads));
          },
  };
}

}  // namespace shardplan::lint_rules::degrees
