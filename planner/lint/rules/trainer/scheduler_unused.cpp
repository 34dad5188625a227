#include "lint/rules/trainer/family.h"

namespace shardplan::lint_rules::trainer {

LintRule scheduler_unused() {
  return {
      .rule =
          {
              .id = "hf.scheduler-unused"_rule,
              .severity = Severity::warning,
              .title = "lr_scheduler_type has no effect beside a scheduler block",
              .explanation =
                  "With a scheduler block DeepSpeed makes the scheduler; the argument is not "
                  "read.",
              .source = kOptimizer,
              .advice = "Remove the scheduler block to use lr_scheduler_type, or the argument.",
              .file = RuleFile::arguments,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.arguments != nullptr && s.arguments->scheduler &&
                s.values.given("scheduler") != nullptr)
              report("lr_scheduler_type",
                     say("{} has no effect: the ds_config has a scheduler block",
                         *s.arguments->scheduler));
          },
  };
}

}  // namespace shardplan::lint_rules::trainer
