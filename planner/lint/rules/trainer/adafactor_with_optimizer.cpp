#include "lint/rules/trainer/family.h"

namespace shardplan::lint_rules::trainer {

LintRule adafactor_with_optimizer() {
  return {
      .rule =
          {
              .id = "hf.adafactor-with-optimizer"_rule,
              .severity = Severity::error,
              .title = "Adafactor beside an optimizer block",
              .explanation = "The Trainer stops: only one of the two can be configured.",
              .source = kOptimizer,
              .advice = "Remove the optimizer block, or the argument.",
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            if (s.arguments != nullptr && s.arguments->adafactor &&
                s.values.given("optimizer") != nullptr)
              report("optimizer", "the training arguments ask for Adafactor", "one of the two");
          },
  };
}

}  // namespace shardplan::lint_rules::trainer
