#include <fmt/format.h>

#include <string>

#include "base/nearest.h"
#include "formats/dtype.h"
#include "load/ds_config/rules.h"

namespace shardplan {
namespace {

constexpr const char* kFp16Masters = "fp16.fp16_master_weights_and_grads";
constexpr const char* kBf16Masters = "bf16.bf16_master_weights_and_grads";
constexpr const char* kBf16States = "bf16.bf16_optimizer_states";

DType engine_dtype_or_fp32(const DsValues& values) {
  if (values.flag("fp16.enabled")) return DType::f16;
  return values.flag("bf16.enabled") ? DType::bf16 : DType::f32;
}

/// runtime/config.py _initialize_params; engine.py _do_optimizer_sanity_check for amp.
void check_modes(const DsValues& values, DsFindings& findings) {
  const bool fp16 = values.flag("fp16.enabled");
  const bool bf16 = values.flag("bf16.enabled");
  if (fp16 && bf16)
    findings.error("ds.fp16-and-bf16"_rule, "bf16.enabled", "fp16 and bf16 are both enabled",
                   "one of the two");
  if (!values.flag("amp.enabled")) return;
  if (values.stage() > 0)
    findings.error("ds.amp-with-zero"_rule, "amp.enabled",
                   say("amp does not work with ZeRO stage {}", values.stage()),
                   "fp16 or bf16 instead");
  else if (fp16 || bf16)
    findings.error("ds.amp-with-16bit"_rule, "amp.enabled", "amp does not work with fp16 or bf16",
                   "one of them");
}

/// runtime/precision_config.py _validate_dynamic_loss_scale_params.
void check_loss_scale(const DsValues& values, DsFindings& findings) {
  if (!values.flag("fp16.enabled") || values.number("fp16.loss_scale") != 0) return;
  for (const char* key : {"fp16.loss_scale_window", "fp16.min_loss_scale"})
    if (values.integer(key) <= 0)
      findings.error("ds.loss-scale-range"_rule, key,
                     say("found {} with dynamic loss scaling", values.integer(key)),
                     "an integer of at least 1");
}

/// engine.py _configure_basic_optimizer: what an optimizer block makes under offload.
bool makes_cpu_adam(const DsValues& values) {
  const auto type = values.maybe_text("optimizer.type");
  if (!type) return true;  // the caller brings an optimizer, which may be CPU Adam
  const std::string name = normalized(*type);
  return (name == "adam" || name == "adamw") && !values.flag("optimizer.params.torch_adam");
}

/// runtime/config.py _do_error_check, runtime/base_optimizer.py _configure_master_weights.
void check_masters(const DsValues& values, DsFindings& findings) {
  const bool fp16 = values.flag(kFp16Masters);
  const bool bf16 = values.flag(kBf16Masters);
  const bool states = values.flag(kBf16States);
  if (states && !bf16)
    findings.error("ds.states-without-masters"_rule, kBf16States,
                   "16-bit optimizer states need 16-bit master weights",
                   say("'{}': true", kBf16Masters));
  if (fp16 && bf16)
    findings.error("ds.masters-of-both"_rule, kBf16Masters, say("excludes '{}'", kFp16Masters),
                   "one of the two");
  for (const char* key : {kFp16Masters, kBf16Masters, kBf16States}) {
    if (!values.flag(key) || values.stage() > 0) continue;
    findings.error("ds.masters-without-zero"_rule, key, "works only with ZeRO",
                   "zero_optimization.stage 1, 2 or 3");
    return;
  }
  if (!fp16 && !bf16) return;
  const char* key = fp16 ? kFp16Masters : kBf16Masters;
  const bool offload =
      values.maybe_text("zero_optimization.offload_optimizer.device").value_or("none") != "none";
  if ((fp16 || !states) && !offload)
    findings.error("ds.masters-without-offload"_rule, key,
                   "16-bit master weights need the optimizer offloaded to CPU Adam",
                   fp16 ? "zero_optimization.offload_optimizer"
                        : say("zero_optimization.offload_optimizer, or '{}'", kBf16States));
  else if (offload && !makes_cpu_adam(values))
    findings.error("ds.masters-without-cpu-adam"_rule, key,
                   say("16-bit master weights need CPU Adam, not {}",
                       values.maybe_text("optimizer.type").value_or("")),
                   "optimizer.type Adam or AdamW without torch_adam");
}

/// engine.py _assert_valid_mixed_precision_config, _do_optimizer_sanity_check.
void check_data_types(const DsValues& values, DsFindings& findings) {
  const DType engine = engine_dtype_or_fp32(values);
  const auto parameters = values.maybe_text("data_types.param_dtype");
  if (parameters && parse_dtype(*parameters) != engine)
    findings.error("ds.param-dtype"_rule, "data_types.param_dtype",
                   say("{} contradicts the engine type {}", *parameters, name_of(engine)),
                   std::string(name_of(engine)));
  const auto text = values.maybe_text("data_types.grad_accum_dtype");
  if (!text || parse_dtype(*text) == engine) return;
  constexpr const char* kKey = "data_types.grad_accum_dtype";
  // Until 0.17.6 stage 0 with bf16 and fp32 accumulation ran BF16_Optimizer.
  const bool old_bf16 = values.version() < DeepSpeedVersion{0, 17, 6} && engine == DType::bf16 &&
                        parse_dtype(*text) == DType::f32;
  if (values.stage() == 0 && !old_bf16)
    findings.error("ds.grad-accum-dtype"_rule, kKey,
                   say("without ZeRO gradients accumulate in the engine type {}", name_of(engine)),
                   std::string(name_of(engine)));
  if (values.stage() == 2)
    findings.warning("ds.grad-accum-dtype-ignored"_rule, kKey,
                     say("has no effect on the gradients that ZeRO stage 2 keeps: "
                         "they stay {}",
                         name_of(engine)));
}

/// engine.py _do_optimizer_sanity_check picks BF16_Optimizer, the only reader of the key.
void check_immediate_update(const DsValues& values, DsFindings& findings) {
  const Json* given = values.given("bf16.immediate_grad_update");
  if (given == nullptr || !values.flag("bf16.immediate_grad_update")) return;
  const bool fp32 =
      parse_dtype(values.maybe_text("data_types.grad_accum_dtype").value_or("")) == DType::f32;
  if (values.stage() == 0 || (values.stage() == 1 && fp32)) return;
  findings.warning("ds.immediate-grad-update"_rule, "bf16.immediate_grad_update",
                   "has no effect: gradients are kept by the ZeRO optimizer",
                   "stage 1 with data_types.grad_accum_dtype fp32");
}

}  // namespace

void check_precision_rules(const DsValues& values, DsFindings& findings) {
  check_modes(values, findings);
  check_loss_scale(values, findings);
  check_masters(values, findings);
  check_data_types(values, findings);
  check_immediate_update(values, findings);
  if (values.flag("torch_autocast.enabled") &&
      values.flag("zero_optimization.zero_quantized_weights"))
    findings.error("ds.quantized-weights-autocast"_rule, "zero_optimization.zero_quantized_weights",
                   "quantized weights do not work with torch_autocast", "one of the two");
}

}  // namespace shardplan
