#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/keys/family.h"

namespace shardplan::config_rules::keys {

KeyRule wrong_type() {
  return {
      .rule =
          {
              .id = "ds.wrong-type"_rule,
              .severity = Severity::error,
              .title = "A value of the wrong type",
              .explanation =
                  "DeepSpeed refuses it, or misreads it later: in plain dictionaries a string "
                  "stays a string and fails in arithmetic.",
              .source = kTyped,
              .advice = "Write the value in the type that is shown.",
              .repair = repair::set_as_read,
          },
      .check =
          [](const MetKey& key, const Report& report) {
            if (key.problem == KeyProblem::refused_value && key.read->refusal == Refusal::type)
              report_value(key, report);
          },
  };
}

}  // namespace shardplan::config_rules::keys
