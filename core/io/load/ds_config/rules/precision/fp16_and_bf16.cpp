#include "load/ds_config/rules/precision/family.h"

namespace shardplan::config_rules::precision {

ConfigRule fp16_and_bf16() {
  return {
      .rule =
          {
              .id = "ds.fp16-and-bf16"_rule,
              .severity = Severity::error,
              .title = "fp16 and bf16 are both enabled",
              .explanation = "The engine has one type and asserts that only one is chosen.",
              .source = "deepspeed/runtime/config.py _initialize_params",
              .advice = "Keep bf16 on Ampere GPUs and later, fp16 on older ones.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            if (s.values.flag("fp16.enabled") && s.values.flag("bf16.enabled"))
              report("bf16.enabled", "fp16 and bf16 are both enabled", "one of the two");
          },
  };
}

}  // namespace shardplan::config_rules::precision
