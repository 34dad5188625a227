#include "load/ds_config/rules/autos/family.h"

namespace shardplan::config_rules::autos {

LostAutoRule nobody_resolves() {
  return {
      .rule =
          {
              .id = "auto.nobody-resolves"_rule,
              .severity = Severity::error,
              .title = "\"auto\" that nothing resolves",
              .explanation =
                  "\"auto\" is a convention of HF Trainer and accelerate; DeepSpeed itself "
                  "takes the word as a value and fails on it outside its typed blocks.",
              .source = "deepspeed/runtime/config_utils.py, deepspeed/runtime/config.py",
              .advice = "Write the value, or run under HF Trainer or accelerate.",
          },
      .check =
          [](const LostAuto& lost, const Report& report) {
            if (lost.fate == AutoFate::nobody_resolves)
              report(
                  lost.path, "\"auto\" is not resolved by DeepSpeed itself",
                  lost.key.trainer_rule.empty() ? "a value" : "a value, or a run under HF Trainer");
          },
  };
}

}  // namespace shardplan::config_rules::autos
