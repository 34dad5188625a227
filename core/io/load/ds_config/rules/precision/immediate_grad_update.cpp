#include "load/ds_config/repairs.h"
#include "load/ds_config/rules/precision/family.h"

namespace shardplan::config_rules::precision {

ConfigRule immediate_grad_update() {
  return {
      .rule =
          {
              .id = "ds.immediate-grad-update"_rule,
              .severity = Severity::warning,
              .title = "immediate_grad_update is not read here",
              .explanation = "Only BF16_Optimizer reads it: stage 0, or stage 1 with fp32 gradient "
                             "accumulation.",
              .source = "deepspeed/runtime/bf16_optimizer.py",
              .advice = "Remove it.",
              .repair = repair::remove_it,
          },
      .check =
          [](const ConfigSubject& s, const Report& report) {
            // engine.py _do_optimizer_sanity_check picks BF16_Optimizer, the only reader of the
            // key.
            constexpr const char* kKey = "bf16.immediate_grad_update";
            if (s.values.given(kKey) == nullptr || !s.values.flag(kKey)) return;
            const auto accumulated =
                s.values.maybe_text("data_types.grad_accum_dtype").value_or("");
            const bool fp32 = parse_dtype(accumulated) == DType::f32;
            if (s.values.stage() == 0 || (s.values.stage() == 1 && fp32)) return;
            report(kKey, "has no effect: gradients are kept by the ZeRO optimizer",
                   "stage 1 with data_types.grad_accum_dtype fp32");
          },
  };
}

}  // namespace shardplan::config_rules::precision
