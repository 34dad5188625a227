#include "load/ds_config/rules/optimizer/family.h"

namespace shardplan::config_rules::optimizer {

ConfigRule muon_reduce_scatter() {
  return {
      .rule =
          {
              .id = "ds.muon-reduce-scatter"_rule,
              .severity = Severity::error,
              .title = "Muon at stage 3 with reduce_scatter",
              .explanation = "Muon needs whole gradients.",
              .source = "deepspeed/runtime/zero/stage3.py __init__",
              .advice = "Set zero_optimization.reduce_scatter to false.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const auto optimizer = known_optimizer(s.values);
            if (optimizer && optimizer->name == "muon" && s.values.stage() == 3 &&
                s.values.flag("zero_optimization.reduce_scatter"))
              report("optimizer.type", "Muon at stage 3 does not work with reduce_scatter",
                     "zero_optimization.reduce_scatter false");
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
