#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {

ConfigRule deepcompile_offload_optimizer() {
  return {
      .rule =
          {
              .id = "ds.deepcompile-offload-optimizer"_rule,
              .severity = Severity::error,
              .title = "compile.offload_opt_states beside offload_optimizer",
              .explanation = "Two owners would move the states.",
              .source = kCompile,
              .advice = "Keep one of them.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (compiles_deeply(s.values) && s.values.flag("compile.offload_opt_states") &&
                device_of(s.values, "offload_optimizer") != "none")
              report("compile.offload_opt_states",
                     "does not work with zero_optimization.offload_optimizer", "one of the two");
          },
  };
}

}  // namespace shardplan::config_rules::zero
