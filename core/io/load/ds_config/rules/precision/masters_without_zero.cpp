#include "load/ds_config/rules/precision/family.h"

namespace shardplan::config_rules::precision {

ConfigRule masters_without_zero() {
  return {
      .rule =
          {
              .id = "ds.masters-without-zero"_rule,
              .severity = Severity::error,
              .title = "16-bit master weights without ZeRO",
              .explanation = "Only ZeRO's optimizers keep them.",
              .source = kMasters,
              .advice = "Use stage 1, 2 or 3.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.stage() > 0) return;
            for (const char* key : {kFp16Masters, kBf16Masters, kBf16States}) {
              if (!s.values.flag(key)) continue;
              report(key, "works only with ZeRO", "zero_optimization.stage 1, 2 or 3");
              return;
            }
          },
  };
}

}  // namespace shardplan::config_rules::precision
