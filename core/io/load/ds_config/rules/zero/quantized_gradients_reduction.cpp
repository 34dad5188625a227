#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {

ConfigRule quantized_gradients_reduction() {
  return {
      .rule =
          {
              .id = "ds.quantized-gradients-reduction"_rule,
              .severity = Severity::error,
              .title = "Quantized gradients without reduce_scatter",
              .explanation =
                  "zero_quantized_gradients replaces the reduce-scatter and needs it on.",
              .source = "deepspeed/runtime/zero/stage3.py",
              .advice = "Set reduce_scatter to true.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.stage() == 3 && s.values.flag(kQuantizedGradients) &&
                !s.values.flag(kReduceScatter))
              report(kQuantizedGradients, "quantized gradients need reduce_scatter",
                     "zero_optimization.reduce_scatter true");
          },
  };
}

}  // namespace shardplan::config_rules::zero
