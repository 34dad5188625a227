// fp16, bf16, amp, torch_autocast, data_types, 16-bit masters.
#include "lint/repairs.h"
#include "lint/rules/families.h"

namespace shardplan {
namespace {

constexpr std::string_view kMasters =
    "deepspeed/runtime/config.py _do_error_check, base_optimizer.py _configure_master_weights";
constexpr std::string_view kSanity = "deepspeed/runtime/engine.py _do_optimizer_sanity_check";

constexpr Rule kRules[] = {
    {"ds.fp16-and-bf16"_rule, Severity::error, "fp16 and bf16 are both enabled",
     "The engine has one type and asserts that only one is chosen.",
     "deepspeed/runtime/config.py _initialize_params",
     "Keep bf16 on Ampere GPUs and later, fp16 on older ones."},
    {"ds.amp-with-zero"_rule, Severity::error, "Apex amp with ZeRO",
     "ZeRO's optimizers do not know amp's patched types.", kSanity, "Use fp16 or bf16 instead."},
    {"ds.amp-with-16bit"_rule, Severity::error, "Apex amp beside fp16 or bf16",
     "Two mixed-precision modes at once.", kSanity, "Keep one of them."},
    {"ds.loss-scale-range"_rule, Severity::error, "A dynamic loss scale that cannot move",
     "loss_scale_window and min_loss_scale must be positive under dynamic loss scaling.",
     "deepspeed/runtime/precision_config.py _validate_dynamic_loss_scale_params",
     "Use 1 or more, or a static loss_scale."},
    {"ds.states-without-masters"_rule, Severity::error,
     "16-bit optimizer states with fp32 master weights",
     "bf16_optimizer_states asserts bf16_master_weights_and_grads.", kMasters,
     "Set bf16.bf16_master_weights_and_grads."},
    {"ds.masters-of-both"_rule, Severity::error, "16-bit masters of two types",
     "fp16's and bf16's master settings exclude each other.", kMasters, "Keep one of the two."},
    {"ds.masters-without-zero"_rule, Severity::error, "16-bit master weights without ZeRO",
     "Only ZeRO's optimizers keep them.", kMasters, "Use stage 1, 2 or 3."},
    {"ds.masters-without-offload"_rule, Severity::error,
     "16-bit master weights on the GPU's optimizer",
     "The GPU optimizers update fp32 masters; only CPU Adam takes 16-bit ones, or 16-bit states on "
     "top of them.",
     kMasters, "Offload the optimizer, or set bf16.bf16_optimizer_states."},
    {"ds.masters-without-cpu-adam"_rule, Severity::error,
     "16-bit master weights with another optimizer than CPU Adam",
     "Only DeepSpeedCPUAdam updates 16-bit masters on the host.", kMasters,
     "Use Adam or AdamW without torch_adam."},
    {"ds.param-dtype"_rule, Severity::error, "param_dtype contradicts the engine's type",
     "data_types.param_dtype must be what fp16 and bf16 say.",
     "deepspeed/runtime/engine.py _assert_valid_mixed_precision_config",
     "Remove it, or write the engine's type.", repair::remove_it},
    {"ds.grad-accum-dtype"_rule, Severity::error,
     "grad_accum_dtype differs from the engine's type without ZeRO",
     "Stage 0 accumulates gradients in the parameters' own type and refuses another.", kSanity,
     "Remove it, or use ZeRO."},
    {"ds.grad-accum-dtype-ignored"_rule, Severity::warning,
     "grad_accum_dtype does not change what stage 2 keeps",
     "Stage 2 reduces gradients as they come and keeps them in the engine's type.",
     "deepspeed/runtime/zero/stage_1_and_2.py", "Use stage 1, or remove it."},
    {"ds.immediate-grad-update"_rule, Severity::warning, "immediate_grad_update is not read here",
     "Only BF16_Optimizer reads it: stage 0, or stage 1 with fp32 gradient accumulation.",
     "deepspeed/runtime/bf16_optimizer.py", "Remove it.", repair::remove_it},
    {"ds.quantized-weights-autocast"_rule, Severity::error,
     "Quantized weights under torch_autocast", "The quantizer wants 16-bit parameters.",
     "deepspeed/runtime/engine.py", "Choose one of the two."},
    {"precision.fp32"_rule, Severity::note, "Everything runs in fp32",
     "Neither fp16, bf16, amp nor torch_autocast is on: parameters, gradients and activations take "
     "four bytes an element, and tensor cores idle. Programs that load a bf16 checkpoint are often "
     "surprised by this.",
     "deepspeed/runtime/engine.py get_data_types", "Enable bf16 if the GPU has it."},
};

}  // namespace

std::span<const Rule> precision_rules() {
  return kRules;
}

void check_precision(const LintSubject& s, LintFindings& findings) {
  const DsValues& v = s.values;
  for (const char* mode : {"fp16.enabled", "bf16.enabled", "amp.enabled", "torch_autocast.enabled"})
    if (v.flag(mode)) return;
  findings.config.note("precision.fp32"_rule, "bf16.enabled",
                       "no mixed-precision block is on: the engine runs in fp32");
}

}  // namespace shardplan
