#include "load/ds_config/rules/optimizer/family.h"

namespace shardplan::config_rules::optimizer {

ConfigRule muon_offloaded() {
  return {
      .rule =
          {
              .id = "ds.muon-offloaded"_rule,
              .severity = Severity::error,
              .title = "Offloaded Muon with reduce_scatter",
              .explanation = "Muon needs whole gradients.",
              .source = "deepspeed/runtime/zero/stage_1_and_2.py __init__",
              .advice = "Set zero_optimization.reduce_scatter to false, or do not offload.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const auto optimizer = known_optimizer(s.values);
            const int stage = s.values.stage();
            if (optimizer && optimizer->name == "muon" && (stage == 1 || stage == 2) &&
                offloads_optimizer(s.values) && s.values.flag("zero_optimization.reduce_scatter"))
              report("optimizer.type", "offloaded Muon does not work with reduce_scatter",
                     "zero_optimization.reduce_scatter false, or no offload_optimizer");
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
