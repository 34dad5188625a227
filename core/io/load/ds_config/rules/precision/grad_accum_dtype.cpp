#include "load/ds_config/rules/precision/family.h"

namespace shardplan::config_rules::precision {

ConfigRule grad_accum_dtype() {
  return {
      .rule =
          {
              .id = "ds.grad-accum-dtype"_rule,
              .severity = Severity::error,
              .title = "grad_accum_dtype differs from the engine's type without ZeRO",
              .explanation =
                  "Stage 0 accumulates gradients in the parameters' own type and refuses another.",
              .source = kSanity,
              .advice = "Remove it, or use ZeRO.",
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            const DType engine = engine_type(s.values);
            const auto text = s.values.maybe_text("data_types.grad_accum_dtype");
            if (!text || parse_dtype(*text) == engine || s.values.stage() > 0) return;
            // Until 0.17.6 stage 0 with bf16 and fp32 accumulation ran BF16_Optimizer.
            const bool old_bf16 = s.values.version() < DeepSpeedVersion{0, 17, 6} &&
                                  engine == DType::bf16 && parse_dtype(*text) == DType::f32;
            if (!old_bf16)
              report(
                  "data_types.grad_accum_dtype",
                  say("without ZeRO gradients accumulate in the engine type {}", name_of(engine)),
                  std::string(name_of(engine)));
          },
  };
}

}  // namespace shardplan::config_rules::precision
