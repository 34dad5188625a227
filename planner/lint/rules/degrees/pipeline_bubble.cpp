#include "lint/rules/degrees/family.h"

namespace shardplan::lint_rules::degrees {

LintRule pipeline_bubble() {
  return {
      .rule =
          {
              .id = "parallel.pipeline-bubble"_rule,
              .severity = Severity::warning,
              .title = "Too few micro-batches for the pipeline",
              .explanation = "A schedule of M micro-batches on S stages stands still for (S - 1) / "
                             "(M + S - 1) "
                             "of its time while it fills and drains.",
              .source = "deepspeed/runtime/pipe/schedule.py TrainSchedule; Narayanan et al. 2021, "
                        "section "
                        "2.2",
              .advice = "Raise gradient_accumulation_steps to at least four times the stages.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            constexpr double kBubble = 1.0 / 3;  // of the step
            const std::int64_t stages = s.context.pipeline_parallel;
            const std::optional<std::int64_t> batches = s.config.options.gradient_accumulation;
            if (stages <= 1 || !batches) return;
            const double bubble =
                static_cast<double>(stages - 1) / static_cast<double>(*batches + stages - 1);
            if (bubble > kBubble)
              report("gradient_accumulation_steps",
                     say("{} micro-batches on {} stages: the pipeline stands still for "
                         "{:.0f} % of its time",
                         *batches, stages, 100 * bubble),
                     say("{} or more", 4 * stages));
          },
  };
}

}  // namespace shardplan::lint_rules::degrees
