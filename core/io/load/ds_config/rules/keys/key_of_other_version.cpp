#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/keys/family.h"

namespace shardplan::config_rules::keys {

KeyRule key_of_other_version() {
  return {
      .rule =
          {
              .id = "ds.key-of-other-version"_rule,
              .severity = Severity::error,
              .title = "A key that this version of DeepSpeed refuses",
              .explanation =
                  "The key came with a later version, or went with an earlier one, and its block "
                  "forbids unknown keys.",
              .source = kSchema,
              .advice = "Use a version that knows it, or remove it.",
              .repair = repair::remove_it,
          },
      .check =
          [](const MetKey& key, const Report& report) {
            if (key.problem == KeyProblem::other_version && key.unknown == DsUnknown::refused)
              report(key.path, say("{}, and refuses it", version_text(key)));
          },
  };
}

}  // namespace shardplan::config_rules::keys
