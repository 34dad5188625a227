#include "load/ds_config/rules/optimizer/family.h"
#include "load/ds_config/schema.h"

namespace shardplan::config_rules::optimizer {

ConfigRule scheduler_argument_missing() {
  return {
      .rule =
          {
              .id = "ds.scheduler-argument-missing"_rule,
              .severity = Severity::error,
              .title = "An argument that the scheduler needs",
              .explanation = "The class has no default for it and raises a TypeError.",
              .source = kSchedules,
              .advice = "Give it a value.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const auto type = deepspeed_scheduler(s.values);
            if (!type) return;
            const auto resolved_later = [&](const std::string& path) {
              return std::any_of(s.autos.begin(), s.autos.end(),
                                 [&](const ResolvedAuto& a) { return a.path == path; });
            };
            for (const DsNode& key : ds_schema().find("scheduler.params")->children)
              if (key.required && contains(key.applies_to, *type) &&
                  s.values.given(key.path) == nullptr && !resolved_later(key.path))
                report(key.path, say("{} needs it", *type), "a value");
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
