#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/deprecated/family.h"

namespace shardplan::config_rules::deprecated {

OldKeyRule alias_twice() {
  return {
      .rule =
          {
              .id = "ds.alias-twice"_rule,
              .severity = Severity::error,
              .title = "Two names of one key",
              .explanation = "Both spellings are accepted, but one value would silently win.",
              .source = "deepspeed/runtime/zero/config.py, pydantic's populate_by_name",
              .advice = "Keep one of the two.",
              .repair = repair::remove_it,
          },
      .check =
          [](const OldKey& key, const Report& report) {
            if (key.fate == OldKeyFate::alias_twice)
              report(key.node.path,
                     say("another name of '{}', which is there too", key.node.alias_of),
                     "one of the two");
          },
  };
}

}  // namespace shardplan::config_rules::deprecated
