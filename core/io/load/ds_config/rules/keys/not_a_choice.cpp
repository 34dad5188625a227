#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/keys/family.h"

namespace shardplan::config_rules::keys {

KeyRule not_a_choice() {
  return {
      .rule =
          {
              .id = "ds.not-a-choice"_rule,
              .severity = Severity::error,
              .title = "A value that is not allowed",
              .explanation = "DeepSpeed accepts a fixed list of names and refuses others.",
              .source = kSchema,
              .advice = "Choose one of the names that are shown.",
              .repair = repair::set_nearest,
          },
      .check =
          [](const MetKey& key, const Report& report) {
            if (key.problem == KeyProblem::refused_value && key.read->refusal == Refusal::choice)
              report_value(key, report);
          },
  };
}

}  // namespace shardplan::config_rules::keys
