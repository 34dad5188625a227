#include "load/ds_config/rules/optimizer/family.h"

namespace shardplan::config_rules::optimizer {

ConfigRule fused_adam_amsgrad() {
  return {
      .rule =
          {
              .id = "ds.fused-adam-amsgrad"_rule,
              .severity = Severity::error,
              .title = "FusedAdam has no amsgrad",
              .explanation = "Its constructor raises an error.",
              .source = "deepspeed/ops/adam/fused_adam.py",
              .advice = "Remove amsgrad, or set optimizer.params.torch_adam.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const auto optimizer = known_optimizer(s.values);
            if (optimizer && optimizer->adam() && makes_fused_adam(s.values) &&
                s.values.flag("optimizer.params.amsgrad"))
              report("optimizer.params.amsgrad", "FusedAdam has no amsgrad",
                     "false, or optimizer.params.torch_adam");
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
