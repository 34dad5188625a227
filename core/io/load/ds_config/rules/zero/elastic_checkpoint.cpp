#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {

ConfigRule elastic_checkpoint() {
  return {
      .rule =
          {
              .id = "ds.elastic-checkpoint"_rule,
              .severity = Severity::warning,
              .title = "elastic_checkpoint at stage 3",
              .explanation = "No longer supported; universal checkpoints took its place.",
              .source = "deepspeed/runtime/zero/config.py elastic_checkpoint_deprecated",
              .advice = "Remove it; use checkpoint.load_universal.",
              .repair = repair::remove_it,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            constexpr const char* kKey = "zero_optimization.elastic_checkpoint";
            if (s.values.stage() == 3 && s.values.flag(kKey))
              report(kKey, "has no effect at stage 3, where universal checkpoints took its place");
          },
  };
}

}  // namespace shardplan::config_rules::zero
