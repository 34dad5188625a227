#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/deprecated/family.h"

namespace shardplan::config_rules::deprecated {

OldKeyRule deprecated_shadowed() {
  return {
      .rule =
          {
              .id = "ds.deprecated-shadowed"_rule,
              .severity = Severity::warning,
              .title = "A deprecated key that its replacement silently overrules",
              .explanation = "Only the new key is read when both are there.",
              .source = "deepspeed/runtime/config.py get_bfloat16_config",
              .advice = "Remove the old key.",
              .repair = repair::remove_it,
          },
      .check =
          [](const OldKey& key, const Report& report) {
            if (key.fate == OldKeyFate::shadowed)
              report(key.node.path,
                     say("ignored, because '{}' is there too", key.node.deprecated->replacement));
          },
  };
}

}  // namespace shardplan::config_rules::deprecated
