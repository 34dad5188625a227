#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/keys/family.h"

namespace shardplan::config_rules::keys {

KeyRule misread_value() {
  return {
      .rule =
          {
              .id = "ds.misread-value"_rule,
              .severity = Severity::warning,
              .title = "A value that is read as another type",
              .explanation = "It works through a conversion that a later version may not make.",
              .source = kTyped,
              .advice = "Write the value in the type that DeepSpeed reads it as.",
              .repair = repair::set_as_read,
          },
      .check =
          [](const MetKey& key, const Report& report) {
            if (key.problem == KeyProblem::misread_value)
              report(key.path, key.read->remark, expected_text(*key.node));
          },
  };
}

}  // namespace shardplan::config_rules::keys
