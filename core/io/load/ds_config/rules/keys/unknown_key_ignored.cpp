#include "load/ds_config/rules/keys/family.h"

namespace shardplan::config_rules::keys {

KeyRule unknown_key_ignored() {
  return {
      .rule =
          {
              .id = "ds.unknown-key-ignored"_rule,
              .severity = Severity::warning,
              .title = "DeepSpeed does not know this key and ignores it",
              .explanation =
                  "At the top level and in plain dictionaries an unknown key is never looked at: "
                  "what it was meant to change stays at its default.",
              .source = kPlain,
              .advice = "Correct the spelling, or remove the key.",
          },
      .check =
          [](const MetKey& key, const Report& report) {
            if (key.problem == KeyProblem::unknown &&
                (key.unknown == DsUnknown::ignored || key.unknown == DsUnknown::open))
              report(key.path, "unknown key, which DeepSpeed ignores", "", nearest_key(key));
          },
  };
}

}  // namespace shardplan::config_rules::keys
