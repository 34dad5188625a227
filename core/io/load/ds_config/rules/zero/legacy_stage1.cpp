#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/zero/family.h"

namespace shardplan::config_rules::zero {

ConfigRule legacy_stage1() {
  return {
      .rule =
          {
              .id = "ds.legacy-stage1"_rule,
              .severity = Severity::error,
              .title = "legacy_stage1",
              .explanation = "The old stage 1 was removed.",
              .source = "deepspeed/runtime/engine.py",
              .advice = "Remove it.",
              .repair = repair::remove_it,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            constexpr const char* kKey = "zero_optimization.legacy_stage1";
            if (s.values.flag(kKey)) report(kKey, "the old stage 1 was removed", "false");
          },
  };
}

}  // namespace shardplan::config_rules::zero
