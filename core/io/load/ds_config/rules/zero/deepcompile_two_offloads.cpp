#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {

ConfigRule deepcompile_two_offloads() {
  return {
      .rule =
          {
              .id = "ds.deepcompile-two-offloads"_rule,
              .severity = Severity::error,
              .title = "DeepCompile offloads states and parameters",
              .explanation = "The passes exclude each other.",
              .source = kCompile,
              .advice = "Keep one of them.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (compiles_deeply(s.values) && s.values.flag("compile.offload_opt_states") &&
                s.values.flag("compile.offload_parameters"))
              report("compile.offload_opt_states", "excludes offload_parameters", "one of the two");
          },
  };
}

}  // namespace shardplan::config_rules::zero
