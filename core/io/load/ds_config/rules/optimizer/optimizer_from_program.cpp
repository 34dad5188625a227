#include "load/ds_config/rules/optimizer/family.h"

namespace shardplan::config_rules::optimizer {

ConfigRule optimizer_from_program() {
  return {
      .rule =
          {
              .id = "ds.optimizer-from-program"_rule,
              .severity = Severity::note,
              .title = "The program must supply the offloaded optimizer",
              .explanation =
                  "Without an optimizer block the program must make DeepSpeedCPUAdam itself; "
                  "another optimizer stops the job unless zero_force_ds_cpu_optimizer is "
                  "false.",
              .source = "deepspeed/runtime/engine.py _configure_optimizer",
              .advice = "Add an optimizer block to be safe.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.given("optimizer") == nullptr && offloads_optimizer(s.values) &&
                s.context.auto_resolver == AutoResolver::none &&
                s.values.flag("zero_force_ds_cpu_optimizer"))
              report("optimizer",
                     "not in the file: the program must supply DeepSpeedCPUAdam, "
                     "because the optimizer is offloaded");
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
