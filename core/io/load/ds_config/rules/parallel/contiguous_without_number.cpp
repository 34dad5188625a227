#include "load/ds_config/rules/parallel/family.h"

namespace shardplan::config_rules::parallel {

ConfigRule contiguous_without_number() {
  return {
      .rule =
          {
              .id = "ds.contiguous-without-number"_rule,
              .severity = Severity::warning,
              .title = "Contiguous checkpoints without their number",
              .explanation =
                  "The buffer is allocated for number_checkpoints, which has no default. A program "
                  "can give it in deepspeed.checkpointing.configure(num_checkpoints=...); without "
                  "either, configure() stops.",
              .source = kCheckpointing,
              .advice = "Set activation_checkpointing.number_checkpoints to the number of layers, "
                        "unless the program gives it.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            constexpr const char* kNumber = "activation_checkpointing.number_checkpoints";
            if (s.values.flag(kContiguous) && !s.values.maybe_integer(kNumber))
              report(kContiguous, "needs the number of checkpoints", kNumber);
          },
  };
}

}  // namespace shardplan::config_rules::parallel
