#include "load/ds_config/rules/optimizer/family.h"

namespace shardplan::config_rules::optimizer {

ConfigRule scheduler_without_type() {
  return {
      .rule =
          {
              .id = "ds.scheduler-without-type"_rule,
              .severity = Severity::warning,
              .title = "A scheduler block without a type",
              .explanation = "The block is ignored, and the learning rate stays constant.",
              .source = "deepspeed/runtime/config.py get_scheduler_name",
              .advice = "Set scheduler.type.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.given("scheduler") != nullptr && !s.values.maybe_text("scheduler.type"))
              report("scheduler", "has no effect without 'type'", "scheduler.type");
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
