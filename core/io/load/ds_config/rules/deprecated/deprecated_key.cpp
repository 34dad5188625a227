#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/deprecated/family.h"

namespace shardplan::config_rules::deprecated {

OldKeyRule deprecated_key() {
  return {
      .rule =
          {
              .id = "ds.deprecated-key"_rule,
              .severity = Severity::warning,
              .title = "A deprecated spelling",
              .explanation =
                  "DeepSpeed still moves the value to the new key, with a warning in the log.",
              .source = kField,
              .advice = "Write the new key.",
              .repair = repair::move_deprecated_key,
          },
      .check =
          [](const OldKey& key, const Report& report) {
            if (key.fate == OldKeyFate::moved)
              report(key.node.path, "deprecated", say("'{}'", key.node.deprecated->replacement));
          },
  };
}

}  // namespace shardplan::config_rules::deprecated
