#include "json/reader.h"
#include "lint/rules/trainer/family.h"

namespace shardplan::lint_rules::trainer {

ArgumentsRule wrong_type() {
  return {
      .rule =
          {
              .id = "hf.wrong-type"_rule,
              .severity = Severity::error,
              .title = "A training argument of the wrong type",
              .explanation = "HfArgumentParser or the Trainer fails on it.",
              .source = "transformers: training_args.py",
              .advice = "Write the value in the type that is shown.",
              .file = RuleFile::arguments,
          },
      .check =
          [](const TrainingArguments& a, const Report& report) {
            for (const MisreadKey& key : a.misread)
              report(key.path, say("found {}", describe(key.value)), key.expected);
          },
  };
}

}  // namespace shardplan::lint_rules::trainer
