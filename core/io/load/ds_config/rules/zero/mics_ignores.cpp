#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {

ConfigRule mics_ignores() {
  return {
      .rule =
          {
              .id = "ds.mics-ignores"_rule,
              .severity = Severity::warning,
              .title = "ZeRO++ beside MiCS",
              .explanation =
                  "MiCS gathers and reduces in its own way: nothing is quantized, and hpZ's "
                  "secondary shards are made and never read.",
              .source = "deepspeed/runtime/zero/mics.py MiCS_Init, deepspeed/runtime/engine.py "
                        "_return_mics_optimizer",
              .advice = "Keep one of the two.",
              .repair = repair::remove_it,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            // What MiCS' own gathers and reductions never ask for (zero/mics.py MiCS_Init,
            // engine.py _return_mics_optimizer).
            if (mics_size(s.values) == 0) return;
            const auto warn = [&](const char* key) {
              report(key, "has no use under MiCS, which gathers and reduces in its own way",
                     "one of the two");
            };
            if (hpz_size(s.values) > 0) warn(kHpz);
            for (const char* key :
                 {"zero_optimization.zero_quantized_weights", kQuantizedGradients})
              if (s.values.flag(key)) warn(key);
          },
  };
}

}  // namespace shardplan::config_rules::zero
