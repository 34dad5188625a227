#include "load/ds_config/rules/optimizer/family.h"

namespace shardplan::config_rules::optimizer {

ConfigRule one_bit_with_zero() {
  return {
      .rule =
          {
              .id = "ds.one-bit-with-zero"_rule,
              .severity = Severity::error,
              .title = "A 1-bit optimizer with ZeRO",
              .explanation = "Compressed communication needs whole states on every rank.",
              .source = "deepspeed/runtime/engine.py _configure_basic_optimizer",
              .advice = "Use stage 0, or another optimizer.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const auto optimizer = known_optimizer(s.values);
            if (optimizer && optimizer->one_bit() && s.values.stage() > 0)
              report("optimizer.type",
                     say("the 1-bit optimizers do not work with ZeRO stage {}", s.values.stage()),
                     "stage 0, or another optimizer");
          },
  };
}

}  // namespace shardplan::config_rules::optimizer
