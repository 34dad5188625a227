#include "load/ds_config/rules/keys/family.h"

namespace shardplan::config_rules::keys {

KeyRule key_of_other_version_ignored() {
  return {
      .rule =
          {
              .id = "ds.key-of-other-version-ignored"_rule,
              .severity = Severity::warning,
              .title = "A key that this version of DeepSpeed does not read",
              .explanation =
                  "The key came with a later version, or went with an earlier one; here it changes "
                  "nothing.",
              .source = kSchema,
              .advice = "Use a version that knows it, or remove it.",
          },
      .check =
          [](const MetKey& key, const Report& report) {
            if (key.problem == KeyProblem::other_version && key.unknown != DsUnknown::refused)
              report(key.path, say("{}, and ignores it", version_text(key)));
          },
  };
}

}  // namespace shardplan::config_rules::keys
