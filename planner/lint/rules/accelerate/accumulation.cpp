#include "json/reader.h"
#include "lint/rules/accelerate/family.h"

namespace shardplan::lint_rules::accelerate {

LintRule accumulation() {
  return {
      .rule =
          {
              .id = "accelerate.accumulation"_rule,
              .severity = Severity::error,
              .title = "gradient_accumulation_steps differs from TrainingArguments",
              .explanation = "The plugin writes its number into the ds_config, and the Trainer "
                             "compares it with "
                             "its own.",
              .source = "accelerate: utils/dataclasses.py DeepSpeedPlugin; transformers: "
                        "integrations/deepspeed.py",
              .advice = "Use one number in both.",
              .file = RuleFile::accelerate,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const AccelerateConfig* a = deepspeed_launch(s);
            if (a == nullptr || a->deepspeed_file || s.arguments == nullptr) return;
            const Json* steps = a->deepspeed_key("gradient_accumulation_steps");
            const std::int64_t arguments = *s.arguments->values.gradient_accumulation_steps;
            if (steps != nullptr && steps->is_number_integer() && *steps != arguments)
              report("deepspeed_config.gradient_accumulation_steps",
                     say("{}, but {} has {}", describe(*steps), s.arguments->file, arguments),
                     "the same number in both");
          },
  };
}

}  // namespace shardplan::lint_rules::accelerate
