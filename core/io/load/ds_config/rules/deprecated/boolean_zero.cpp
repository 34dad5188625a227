#include "load/ds_config/rules/deprecated/family.h"
#include "load/ds_config/values.h"

namespace shardplan::config_rules::deprecated {
namespace {

std::vector<Edit> expand_boolean(const Diagnostic& finding, const Json& document) {
  const Json* value = value_at(document, finding.key);
  if (value == nullptr || !value->is_boolean()) return {};
  return {set_key(finding.key, Json{{"stage", value->get<bool>() ? 1 : 0}})};
}

}  // namespace

RawConfigRule boolean_zero() {
  return {
      .rule =
          {
              .id = "ds.boolean-zero"_rule,
              .severity = Severity::warning,
              .title = "zero_optimization as true or false",
              .explanation =
                  "The form of 2020: true means stage 1, not the stage that the job may have been "
                  "planned with.",
              .source = "deepspeed/runtime/zero/config.py read_zero_config_deprecated",
              .advice = "Write a block with the stage.",
              .repair = expand_boolean,
          },
      .check =
          [](const Json& document, const Report& report) {
            const Json* zero = value_at(document, "zero_optimization");
            if (zero == nullptr || !zero->is_boolean()) return;
            const bool on = zero->get<bool>();
            report("zero_optimization",
                   say("the boolean form is deprecated; {} means stage {}", on, on ? 1 : 0),
                   say("{{\"stage\": {}}}", on ? 1 : 0));
          },
  };
}

}  // namespace shardplan::config_rules::deprecated
