#include "lint/rules/trainer/family.h"

namespace shardplan::lint_rules::trainer {

LintRule optim_unused() {
  return {
      .rule =
          {
              .id = "hf.optim-unused"_rule,
              .severity = Severity::warning,
              .title = "optim has no effect beside an optimizer block",
              .explanation =
                  "With an optimizer block DeepSpeed makes the optimizer; the argument is not "
                  "read.",
              .source = kOptimizer,
              .advice = "Remove the optimizer block to use optim, or the argument.",
              .file = RuleFile::arguments,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.arguments == nullptr || s.values.given("optimizer") == nullptr) return;
            const TrainingArguments& a = *s.arguments;
            if (a.optimizer && !a.adafactor)
              report("optim",
                     say("{} has no effect: the ds_config has an optimizer block", *a.optimizer));
          },
  };
}

}  // namespace shardplan::lint_rules::trainer
