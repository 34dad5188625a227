#include "lint/rules/accelerate/family.h"

namespace shardplan::lint_rules::accelerate {

LintRule zero3_init() {
  return {
      .rule =
          {
              .id = "accelerate.zero3-init"_rule,
              .severity = Severity::warning,
              .title = "zero3_init_flag without stage 3",
              .explanation =
                  "It is switched off with a warning: the model is built whole on every rank.",
              .source = kPlugin,
              .advice = "Set it to false, or use stage 3.",
              .file = RuleFile::accelerate,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const AccelerateConfig* a = deepspeed_launch(s);
            const Json* init = a == nullptr ? nullptr : a->deepspeed_key("zero3_init_flag");
            if (init != nullptr && *init == true && s.values.stage() != 3)
              report("deepspeed_config.zero3_init_flag",
                     say("has no effect at stage {}", s.values.stage()), "false");
          },
  };
}

}  // namespace shardplan::lint_rules::accelerate
