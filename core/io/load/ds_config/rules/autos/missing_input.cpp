#include "json/reader.h"
#include "load/ds_config/rules/autos/family.h"

namespace shardplan::config_rules::autos {

LostAutoRule missing_input() {
  return {
      .rule =
          {
              .id = "auto.missing-input"_rule,
              .severity = Severity::note,
              .title = "\"auto\" that depends on something not given here",
              .explanation =
                  "It is resolved when the job starts, from the model, the data or the number "
                  "of ranks. The linter continues with DeepSpeed's default.",
              .source = kTrainer,
              .advice = "Give --model and --gpus to see the value.",
          },
      .check =
          [](const LostAuto& lost, const Report& report) {
            if (lost.fate != AutoFate::missing_input) return;
            const Said goes_on = lost.fallback.is_null() ? Said("left out")
                                                         : say("DeepSpeed's default {} is assumed",
                                                               describe(lost.fallback));
            report(lost.path,
                   say("\"auto\" needs {}, which is not known; {}", lost.missing, goes_on));
          },
  };
}

}  // namespace shardplan::config_rules::autos
