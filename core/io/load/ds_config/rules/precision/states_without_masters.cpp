#include "load/ds_config/rules/precision/family.h"

namespace shardplan::config_rules::precision {

ConfigRule states_without_masters() {
  return {
      .rule =
          {
              .id = "ds.states-without-masters"_rule,
              .severity = Severity::error,
              .title = "16-bit optimizer states with fp32 master weights",
              .explanation = "bf16_optimizer_states asserts bf16_master_weights_and_grads.",
              .source = kMasters,
              .advice = "Set bf16.bf16_master_weights_and_grads.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.flag(kBf16States) && !s.values.flag(kBf16Masters))
              report(kBf16States, "16-bit optimizer states need 16-bit master weights",
                     say("'{}': true", kBf16Masters));
          },
  };
}

}  // namespace shardplan::config_rules::precision
