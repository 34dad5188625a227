#include "load/ds_config/rules/autos/family.h"

namespace shardplan::config_rules::autos {

LostAutoRule not_resolved() {
  return {
      .rule =
          {
              .id = "auto.not-resolved"_rule,
              .severity = Severity::error,
              .title = "\"auto\" that neither the trainer nor DeepSpeed resolves",
              .explanation = "The trainer fills in a short list of keys; this one reaches "
                             "DeepSpeed as the word "
                             "\"auto\".",
              .source = kTrainer,
              .advice = "Write the value.",
          },
      .check =
          [](const LostAuto& lost, const Report& report) {
            if (lost.fate == AutoFate::not_resolved)
              report(lost.path,
                     say("\"auto\" is resolved neither by {} nor by DeepSpeed itself",
                         resolver_in_words(lost.resolver)),
                     "a value");
          },
  };
}

}  // namespace shardplan::config_rules::autos
