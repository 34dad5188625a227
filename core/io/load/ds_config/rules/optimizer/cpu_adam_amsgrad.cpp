#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/optimizer/family.h"

namespace shardplan::config_rules::optimizer {

ConfigRule cpu_adam_amsgrad() {
  return {
      .rule =
          {
              .id = "ds.cpu-adam-amsgrad"_rule,
              .severity = Severity::warning,
              .title = "CPU Adam ignores amsgrad",
              .explanation = "The argument is taken and never used.",
              .source = "deepspeed/ops/adam/cpu_adam.py",
              .advice = "Remove it.",
              .repair = repair::remove_it,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const auto optimizer = known_optimizer(s.values);
            if (optimizer && optimizer->adam() && offloads_optimizer(s.values) &&
                !s.values.flag("optimizer.params.torch_adam") &&
                s.values.flag("optimizer.params.amsgrad"))
              report("optimizer.params.amsgrad", "has no effect: CPU Adam has no amsgrad");
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
