#include "json/reader.h"
#include "lint/rules/accelerate/family.h"

namespace shardplan::lint_rules::accelerate {

AccelerateRule wrong_type() {
  return {
      .rule =
          {
              .id = "accelerate.wrong-type"_rule,
              .severity = Severity::error,
              .title = "A value of the wrong type",
              .explanation = "PyYAML reads 1e-5 without a point, and anything in quotes, as text.",
              .source = kConfig,
              .advice = "Write the value in the type that is shown.",
              .file = RuleFile::accelerate,
          },
      .check =
          [](const AccelerateConfig& a, const Report& report) {
            for (const MisreadKey& key : a.misread)
              report(key.path, say("found {}", describe(key.value)), key.expected);
          },
  };
}

}  // namespace shardplan::lint_rules::accelerate
