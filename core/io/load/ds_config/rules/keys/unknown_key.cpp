#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/keys/family.h"

namespace shardplan::config_rules::keys {

KeyRule unknown_key() {
  return {
      .rule =
          {
              .id = "ds.unknown-key"_rule,
              .severity = Severity::error,
              .title = "DeepSpeed does not know this key and refuses it",
              .explanation = "Blocks with a schema of their own forbid unknown keys: the job stops "
                             "at start-up "
                             "with a validation error.",
              .source = kTyped,
              .advice = "Correct the spelling, or remove the key.",
              .repair = repair::rename_to_nearest,
          },
      .check =
          [](const MetKey& key, const Report& report) {
            if (key.problem == KeyProblem::unknown && key.unknown == DsUnknown::refused)
              report(key.path, "unknown key, which DeepSpeed refuses in this block", "",
                     nearest_key(key));
          },
  };
}

}  // namespace shardplan::config_rules::keys
