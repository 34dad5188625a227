#include "load/ds_config/rules/precision/family.h"

#include <array>

namespace shardplan::config_rules::precision {

DType engine_type(const DsValues& values) {
  if (values.flag("fp16.enabled")) return DType::f16;
  return values.flag("bf16.enabled") ? DType::bf16 : DType::f32;
}

const char* masters_key(const DsValues& values) {
  if (values.stage() == 0) return nullptr;
  if (values.flag(kFp16Masters)) return kFp16Masters;
  return values.flag(kBf16Masters) ? kBf16Masters : nullptr;
}

std::span<const ConfigRule> all() {
  static const std::array kRules{
      fp16_and_bf16(),
      auto_cast_without_fp16(),
      amp_with_zero(),
      amp_with_16bit(),
      loss_scale_range(),
      states_without_masters(),
      masters_of_both(),
      masters_without_zero(),
      masters_without_offload(),
      masters_without_cpu_adam(),
      param_dtype(),
      grad_accum_dtype(),
      grad_accum_dtype_ignored(),
      immediate_grad_update(),
      quantized_weights_autocast(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all());
}

}  // namespace shardplan::config_rules::precision
