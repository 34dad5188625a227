#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {

ConfigRule partial_offload_stage() {
  return {
      .rule =
          {
              .id = "ds.partial-offload-stage"_rule,
              .severity = Severity::error,
              .title = "A part of the optimizer offloaded below stage 3",
              .explanation = "offload_optimizer.ratio below 1 is implemented at stage 3 only.",
              .source = "deepspeed/runtime/zero/config.py offload_ratio_check",
              .advice = "Use 1.0, or stage 3.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const double ratio = s.values.number(kRatio);
            const int stage = s.values.stage();
            if (ratio < 1.0 && stage != 3)
              report(kRatio,
                     say("{} at stage {}: a part is offloaded only at stage 3", ratio, stage),
                     "1.0, or stage 3");
          },
  };
}

}  // namespace shardplan::config_rules::zero
