#include "lint/rules/accelerate/family.h"

namespace shardplan::lint_rules::accelerate {

LintRule trainer_precision() {
  return {
      .rule =
          {
              .id = "accelerate.trainer-precision"_rule,
              .severity = Severity::error,
              .title = "mixed_precision contradicts TrainingArguments",
              .explanation =
                  "The launcher and the Trainer each set the type; the ds_config can follow only "
                  "one.",
              .source = "transformers: training_args.py; accelerate: commands/launch.py",
              .advice = "Use one type in both.",
              .file = RuleFile::accelerate,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const AccelerateConfig* a = mixed_launch(s);
            if (a == nullptr || s.arguments == nullptr) return;
            const std::string& type = *a->mixed_precision;
            const TrainerArguments& t = s.arguments->values;
            const bool fp16 = type == "fp16";
            if ((fp16 ? t.bf16 : t.fp16).value_or(false))
              report("mixed_precision",
                     say("{}, but {} sets {}", type, s.arguments->file, fp16 ? "bf16" : "fp16"),
                     "the same type in both");
          },
  };
}

}  // namespace shardplan::lint_rules::accelerate
