#include "lint/rules/autos/family.h"
#include "load/ds_config/repairs.h"
#include "load/ds_config/schema.h"

namespace shardplan::lint_rules::autos {

LintRule dropped() {
  return {
      .rule =
          {
              .id = "auto.dropped"_rule,
              .severity = Severity::warning,
              .title = "\"auto\" that silently becomes DeepSpeed's default",
              .explanation =
                  "No trainer fills this key in, and typed blocks drop the word without a "
                  "message; accelerate's prepare(), which HF Trainer calls, stops at it. \"auto\" "
                  "does not mean that something is tuned.",
              .source = "deepspeed/runtime/config_utils.py DeepSpeedConfigModel.__init__; "
                        "accelerate: utils/dataclasses.py DeepSpeedPlugin.fill_match",
              .advice = "Write the value, or remove the key.",
              .repair = repair::remove_it,
          },
      .check =
          [](const LintSubject& s, const Report& report) {
            for (const ResolvedAuto& resolved : s.config.autos) {
              const DsNode* key = ds_schema().find(resolved.path);
              if (key == nullptr || !resolved.rule.text.starts_with("dropped")) continue;
              if (!key->trainer_rule.empty() || !key->accelerate_rule.empty()) continue;
              report(resolved.path,
                     say("nothing fills in \"auto\", and it is dropped: DeepSpeed's default {} "
                         "applies",
                         resolved.value.dump()),
                     "a value");
            }
          },
  };
}

}  // namespace shardplan::lint_rules::autos
