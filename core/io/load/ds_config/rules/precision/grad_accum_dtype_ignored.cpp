#include "load/ds_config/rules/precision/family.h"

namespace shardplan::config_rules::precision {

ConfigRule grad_accum_dtype_ignored() {
  return {
      .rule =
          {
              .id = "ds.grad-accum-dtype-ignored"_rule,
              .severity = Severity::warning,
              .title = "grad_accum_dtype does not change what stage 2 keeps",
              .explanation =
                  "Stage 2 reduces gradients as they come and keeps them in the engine's type.",
              .source = "deepspeed/runtime/zero/stage_1_and_2.py",
              .advice = "Use stage 1, or remove it.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const DType engine = engine_type(s.values);
            const auto text = s.values.maybe_text("data_types.grad_accum_dtype");
            if (text && parse_dtype(*text) != engine && s.values.stage() == 2)
              report("data_types.grad_accum_dtype",
                     say("has no effect on the gradients that ZeRO stage 2 keeps: "
                         "they stay {}",
                         name_of(engine)));
          },
  };
}

}  // namespace shardplan::config_rules::precision
