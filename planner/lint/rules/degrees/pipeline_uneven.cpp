#include "lint/rules/degrees/family.h"

namespace shardplan::lint_rules::degrees {

LintRule pipeline_uneven() {
  return {
      .rule =
          {
              .id = "parallel.pipeline-uneven"_rule,
              .severity = Severity::warning,
              .title = "Stages of unequal length",
              .explanation = "A pipeline runs at the pace of its longest stage.",
              .source = kPipeline,
              .advice = "Choose a number of stages that divides the layers.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            constexpr double kImbalance = 0.05;  // of the step
            const std::int64_t stages = s.context.pipeline_parallel, layers = facts_of(s).layers;
            if (stages <= 1 || layers < stages) return;
            const std::int64_t longest = (layers + stages - 1) / stages;
            const double over =
                static_cast<double>(longest * stages) / static_cast<double>(layers) - 1;
            if (over > kImbalance)
              report(kStages,
                     say("{} layers on {} stages: the longest has {}, and all wait for it, "
                         "{:.0f} % of the time",
                         layers, stages, longest, 100 * over / (1 + over)),
                     divisors(layers));
          },
  };
}

}  // namespace shardplan::lint_rules::degrees
