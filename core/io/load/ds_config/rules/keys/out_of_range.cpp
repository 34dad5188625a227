#include "load/ds_config/rules/keys/family.h"

namespace shardplan::config_rules::keys {

KeyRule out_of_range() {
  return {
      .rule =
          {
              .id = "ds.out-of-range"_rule,
              .severity = Severity::error,
              .title = "A value out of range",
              .explanation = "DeepSpeed refuses it at start-up or fails at the first step.",
              .source = kSchema,
              .advice = "Choose a value within the range that is shown.",
          },
      .check =
          [](const MetKey& key, const Report& report) {
            if (key.problem == KeyProblem::refused_value && key.read->refusal == Refusal::range)
              report_value(key, report);
          },
  };
}

}  // namespace shardplan::config_rules::keys
