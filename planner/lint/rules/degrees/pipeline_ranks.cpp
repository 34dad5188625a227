#include "lint/rules/degrees/family.h"

namespace shardplan::lint_rules::degrees {

LintRule pipeline_ranks() {
  return {
      .rule =
          {
              .id = "parallel.pipeline-ranks"_rule,
              .severity = Severity::error,
              .title = "Stages do not divide the ranks",
              .explanation =
                  "Every stage has the same number of ranks; PipelineModule raises an error "
                  "otherwise.",
              .source = kPipeline,
              .advice = "Choose a divisor of the ranks.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const std::int64_t stages = s.context.pipeline_parallel, ranks = all_ranks(s);
            if (stages > 1 && ranks > 0 && ranks % stages != 0)
              report(kStages, say("{} stages do not divide the {} ranks", stages, ranks),
                     divisors(ranks));
          },
  };
}

}  // namespace shardplan::lint_rules::degrees
