#include "load/ds_config/rules/precision/family.h"

namespace shardplan::config_rules::precision {

ConfigRule amp_with_zero() {
  return {
      .rule =
          {
              .id = "ds.amp-with-zero"_rule,
              .severity = Severity::error,
              .title = "Apex amp with ZeRO",
              .explanation = "ZeRO's optimizers do not know amp's patched types.",
              .source = kSanity,
              .advice = "Use fp16 or bf16 instead.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.flag("amp.enabled") && s.values.stage() > 0)
              report("amp.enabled", say("amp does not work with ZeRO stage {}", s.values.stage()),
                     "fp16 or bf16 instead");
          },
  };
}

}  // namespace shardplan::config_rules::precision
