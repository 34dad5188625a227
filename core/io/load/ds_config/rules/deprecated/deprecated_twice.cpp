#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/deprecated/family.h"

namespace shardplan::config_rules::deprecated {

OldKeyRule deprecated_twice() {
  return {
      .rule =
          {
              .id = "ds.deprecated-twice"_rule,
              .severity = Severity::error,
              .title = "A deprecated key beside its replacement",
              .explanation = "DeepSpeed stops: it cannot know which of the two is meant.",
              .source = kField,
              .advice = "Keep the replacement only.",
              .repair = repair::remove_it,
          },
      .check =
          [](const OldKey& key, const Report& report) {
            if (key.fate == OldKeyFate::twice)
              report(key.node.path,
                     say("deprecated, and given together with its replacement '{}'",
                         key.node.deprecated->replacement),
                     "only the replacement");
          },
  };
}

}  // namespace shardplan::config_rules::deprecated
