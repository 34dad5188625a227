#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {

ConfigRule predivide_with_reduce_scatter() {
  return {
      .rule =
          {
              .id = "ds.predivide-with-reduce-scatter"_rule,
              .severity = Severity::error,
              .title = "gradient_predivide_factor with reduce_scatter",
              .explanation =
                  "At stages 2 and 3 reduce_scatter averages by itself and asserts a factor of 1.",
              .source = kInit,
              .advice = "Remove the factor, or set reduce_scatter to false.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const int stage = s.values.stage();
            if (stage >= 2 && s.values.flag(kReduceScatter) &&
                s.values.number("gradient_predivide_factor") != 1.0)
              report("gradient_predivide_factor",
                     say("must be 1 with reduce_scatter at stage {}", stage), "1.0");
          },
  };
}

}  // namespace shardplan::config_rules::zero
