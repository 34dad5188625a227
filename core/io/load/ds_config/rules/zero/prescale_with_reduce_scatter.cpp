#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {

ConfigRule prescale_with_reduce_scatter() {
  return {
      .rule =
          {
              .id = "ds.prescale-with-reduce-scatter"_rule,
              .severity = Severity::error,
              .title = "prescale_gradients with reduce_scatter",
              .explanation =
                  "At stages 2 and 3 reduce_scatter asserts that gradients are not scaled "
                  "beforehand.",
              .source = kInit,
              .advice = "Remove it, or set reduce_scatter to false.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const int stage = s.values.stage();
            if (stage >= 2 && s.values.flag(kReduceScatter) && s.values.flag("prescale_gradients"))
              report("prescale_gradients",
                     say("must be off with reduce_scatter at stage {}", stage), "false");
          },
  };
}

}  // namespace shardplan::config_rules::zero
