#include "load/ds_config/rules/precision/family.h"

namespace shardplan::config_rules::precision {

ConfigRule masters_of_both() {
  return {
      .rule =
          {
              .id = "ds.masters-of-both"_rule,
              .severity = Severity::error,
              .title = "16-bit masters of two types",
              .explanation = "fp16's and bf16's master settings exclude each other.",
              .source = kMasters,
              .advice = "Keep one of the two.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.flag(kFp16Masters) && s.values.flag(kBf16Masters))
              report(kBf16Masters, say("excludes '{}'", kFp16Masters), "one of the two");
          },
  };
}

}  // namespace shardplan::config_rules::precision
