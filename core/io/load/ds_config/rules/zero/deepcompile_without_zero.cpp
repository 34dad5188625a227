#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {

ConfigRule deepcompile_without_zero() {
  return {
      .rule =
          {
              .id = "ds.deepcompile-without-zero"_rule,
              .severity = Severity::warning,
              .title = "DeepCompile without ZeRO",
              .explanation = "It falls back to plain torch.compile.",
              .source = kCompile,
              .advice = "Use stage 1, 2 or 3, or remove it.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (compiles_deeply(s.values) && s.values.stage() == 0)
              report("compile.deepcompile", "falls back to torch.compile without ZeRO");
          },
  };
}

}  // namespace shardplan::config_rules::zero
