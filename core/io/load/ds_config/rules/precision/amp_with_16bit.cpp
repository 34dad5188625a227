#include "load/ds_config/rules/precision/family.h"

namespace shardplan::config_rules::precision {

ConfigRule amp_with_16bit() {
  return {
      .rule =
          {
              .id = "ds.amp-with-16bit"_rule,
              .severity = Severity::error,
              .title = "Apex amp beside fp16 or bf16",
              .explanation = "Two mixed-precision modes at once.",
              .source = kSanity,
              .advice = "Keep one of them.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.flag("amp.enabled") && s.values.stage() == 0 &&
                (s.values.flag("fp16.enabled") || s.values.flag("bf16.enabled")))
              report("amp.enabled", "amp does not work with fp16 or bf16", "one of them");
          },
  };
}

}  // namespace shardplan::config_rules::precision
