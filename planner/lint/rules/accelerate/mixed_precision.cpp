#include "lint/rules/accelerate/family.h"

namespace shardplan::lint_rules::accelerate {

LintRule mixed_precision() {
  return {
      .rule =
          {
              .id = "accelerate.mixed-precision"_rule,
              .severity = Severity::error,
              .title = "mixed_precision contradicts the ds_config",
              .explanation =
                  "accelerate refuses bf16 beside an enabled fp16 block, and the reverse.",
              .source = "accelerate: utils/dataclasses.py set_mixed_precision",
              .advice = "Use one type in both.",
              .file = RuleFile::accelerate,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            const AccelerateConfig* a = mixed_launch(s);
            if (a == nullptr) return;
            const std::string& type = *a->mixed_precision;
            const char* other = type == "fp16" ? "bf16.enabled" : "fp16.enabled";
            if (s.values.flag(other))
              report("mixed_precision", say("{}, but {} enables {}", type, s.file, other),
                     "the same type in both");
          },
  };
}

}  // namespace shardplan::lint_rules::accelerate
