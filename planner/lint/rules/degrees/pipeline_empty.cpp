#include "lint/rules/degrees/family.h"

namespace shardplan::lint_rules::degrees {

LintRule pipeline_empty() {
  return {
      .rule =
          {
              .id = "parallel.pipeline-empty"_rule,
              .severity = Severity::error,
              .title = "More stages than layers",
              .explanation =
                  "Layers are not split: some stages would only pass on what they receive.",
              .source = kPipeline,
              .advice = "Use fewer stages.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const std::int64_t stages = s.context.pipeline_parallel, layers = facts_of(s).layers;
            if (stages > 1 && layers > 0 && stages > layers)
              report(kStages, say("{} stages for {} layers", stages, layers),
                     say("at most {}", layers));
          },
  };
}

}  // namespace shardplan::lint_rules::degrees
