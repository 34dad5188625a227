#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/keys/family.h"

namespace shardplan::config_rules::keys {

KeyRule null_value() {
  return {
      .rule =
          {
              .id = "ds.null-value"_rule,
              .severity = Severity::error,
              .title = "null where a value must be",
              .explanation = "Typed blocks refuse null; at the top level it takes the place of the "
                             "default and fails in use.",
              .source = kTyped,
              .advice = "Remove the key; the default then applies.",
              .repair = repair::remove_it,
          },
      .check =
          [](const MetKey& key, const Report& report) {
            if (key.problem == KeyProblem::null_value && refuses_null(key))
              report(key.path, "found null", expected_text(*key.node));
          },
  };
}

}  // namespace shardplan::config_rules::keys
