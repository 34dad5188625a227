#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/keys/family.h"

namespace shardplan::config_rules::keys {

KeyRule null_replaces_default() {
  return {
      .rule =
          {
              .id = "ds.null-replaces-default"_rule,
              .severity = Severity::warning,
              .title = "null takes the place of the default",
              .explanation =
                  "In plain dictionaries null is a value like any other: the default no longer "
                  "applies.",
              .source = "deepspeed/runtime/config_utils.py get_scalar_param",
              .advice = "Remove the key.",
              .repair = repair::remove_it,
          },
      .check =
          [](const MetKey& key, const Report& report) {
            if (key.problem == KeyProblem::null_value && !refuses_null(key))
              report(key.path, "null takes the place of the default", expected_text(*key.node));
          },
  };
}

}  // namespace shardplan::config_rules::keys
