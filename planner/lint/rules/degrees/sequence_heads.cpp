#include <algorithm>

#include "lint/rules/degrees/family.h"

namespace shardplan::lint_rules::degrees {

LintRule sequence_heads() {
  return {
      .rule =
          {
              .id = "parallel.sequence-heads"_rule,
              .severity = Severity::error,
              .title = "sequence_parallel_size does not suit the heads",
              .explanation =
                  "Ulysses trades the sequence for heads: each rank attends with a share of them. "
                  "Attention heads must divide evenly; heads of keys and values too, or be copied "
                  "to "
                  "as many ranks each.",
              .source = kUlysses,
              .advice = "Choose a degree that divides the attention heads.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const std::int64_t degree = sequence_degree(s);
            const std::int64_t heads = facts_of(s).attention_heads,
                               shared = facts_of(s).key_value_heads;
            if (degree <= 1 || heads == 0) return;
            const bool shares = shared == 0 || shared % degree == 0 || degree % shared == 0;
            if (heads % degree == 0 && shares) return;
            report(kSequenceSize,
                   heads % degree != 0
                       ? say("{} does not divide the {} attention heads", degree, heads)
                       : say("{} neither divides the {} key-value heads nor is a multiple "
                             "of them",
                             degree, shared),
                   divisors(shared == 0 ? heads : std::min(heads, shared)));
          },
  };
}

}  // namespace shardplan::lint_rules::degrees
