#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/deprecated/family.h"
#include "load/ds_config/values.h"

namespace shardplan::config_rules::deprecated {

RawConfigRule allgather_size_unread() {
  return {
      .rule =
          {
              .id = "ds.allgather-size-unread"_rule,
              .severity = Severity::warning,
              .title = "allgather_size without a boolean ZeRO",
              .explanation = "It is read only beside \"zero_optimization\": true.",
              .source = "deepspeed/runtime/zero/config.py read_zero_config_deprecated",
              .advice = "Use zero_optimization.allgather_bucket_size.",
              .repair = repair::remove_it,
          },
      .check =
          [](const Json& document, const Report& report) {
            const Json* zero = value_at(document, "zero_optimization");
            if (value_at(document, "allgather_size") != nullptr &&
                (zero == nullptr || !zero->is_boolean()))
              report("allgather_size", "is read only beside \"zero_optimization\": true",
                     "zero_optimization.allgather_bucket_size");
          },
  };
}

}  // namespace shardplan::config_rules::deprecated
