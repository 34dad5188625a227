#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/deprecated/family.h"

namespace shardplan::config_rules::deprecated {

OldKeyRule deprecated_ignored() {
  return {
      .rule =
          {
              .id = "ds.deprecated-ignored"_rule,
              .severity = Severity::warning,
              .title = "A deprecated key that is no longer read",
              .explanation = "It changes nothing; another key now does what it did.",
              .source = kField,
              .advice = "Use the key that is shown.",
              .repair = repair::remove_it,
          },
      .check =
          [](const OldKey& key, const Report& report) {
            if (key.fate == OldKeyFate::ignored)
              report(key.node.path, "deprecated and without effect", key.node.deprecated->advice);
          },
  };
}

}  // namespace shardplan::config_rules::deprecated
