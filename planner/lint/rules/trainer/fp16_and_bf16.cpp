#include "lint/rules/trainer/family.h"

namespace shardplan::lint_rules::trainer {

ArgumentsRule fp16_and_bf16() {
  return {
      .rule =
          {
              .id = "hf.fp16-and-bf16"_rule,
              .severity = Severity::error,
              .title = "fp16 and bf16 are both set in the arguments",
              .explanation = "TrainingArguments raises an error.",
              .source = "transformers: training_args.py __post_init__",
              .advice = "Keep one of the two.",
              .file = RuleFile::arguments,
          },
      .check =
          [](const TrainingArguments& a, const Report& report) {
            const auto is_on = [&](const char* key) {
              const Json* value = value_at(a.document, key);
              return value != nullptr && value->is_boolean() && value->get<bool>();
            };
            if (is_on("fp16") && is_on("bf16"))
              report("bf16", "fp16 and bf16 are both set", "one of the two");
          },
  };
}

}  // namespace shardplan::lint_rules::trainer
