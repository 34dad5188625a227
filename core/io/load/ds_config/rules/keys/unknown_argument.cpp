#include "load/ds_config/rules/keys/family.h"

namespace shardplan::config_rules::keys {

KeyRule unknown_argument() {
  return {
      .rule =
          {
              .id = "ds.unknown-argument"_rule,
              .severity = Severity::warning,
              .title = "Not a known argument of the optimizer or scheduler",
              .explanation =
                  "The block is handed to a constructor, which refuses arguments that it does "
                  "not have.",
              .source = "deepspeed/runtime/engine.py _configure_basic_optimizer",
              .advice = "Check the class's own arguments.",
          },
      .check =
          [](const MetKey& key, const Report& report) {
            if (key.problem == KeyProblem::unknown && key.unknown == DsUnknown::passed_on)
              report(key.path, "not a known argument; it is passed on and may be refused there", "",
                     nearest_key(key));
          },
  };
}

}  // namespace shardplan::config_rules::keys
