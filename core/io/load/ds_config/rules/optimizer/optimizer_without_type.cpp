#include "load/ds_config/rules/optimizer/family.h"

namespace shardplan::config_rules::optimizer {

ConfigRule optimizer_without_type() {
  return {
      .rule =
          {
              .id = "ds.optimizer-without-type"_rule,
              .severity = Severity::warning,
              .title = "An optimizer block without a type",
              .explanation =
                  "DeepSpeed then expects the program to supply the optimizer, and ignores the "
                  "block.",
              .source = "deepspeed/runtime/config.py get_optimizer_name",
              .advice = "Set optimizer.type.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.given("optimizer") != nullptr && !s.values.maybe_text("optimizer.type"))
              report("optimizer", "has no effect without 'type'", "optimizer.type");
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
