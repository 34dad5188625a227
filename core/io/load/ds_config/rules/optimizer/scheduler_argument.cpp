#include "load/ds_config/rules/optimizer/family.h"
#include "load/ds_config/schema.h"

namespace shardplan::config_rules::optimizer {

ConfigRule scheduler_argument() {
  return {
      .rule =
          {
              .id = "ds.scheduler-argument"_rule,
              .severity = Severity::error,
              .title = "An argument of another scheduler",
              .explanation = "Arguments are passed by name; the class raises a TypeError.",
              .source = kSchedules,
              .advice = "Remove it, or choose the scheduler that has it.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            // lr_schedules.py's classes, which engine.py hands the arguments by name.
            const auto type = deepspeed_scheduler(s.values);
            if (!type) return;
            for (const DsNode& key : ds_schema().find("scheduler.params")->children)
              if (s.values.given(key.path) != nullptr && !contains(key.applies_to, *type))
                report(key.path, say("{} takes no such argument", *type),
                       say("an argument of {}", *type));
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
