// optimizer and scheduler.
#include "lint/repairs.h"
#include "lint/rules/families.h"
#include "load/ds_config/values.h"

namespace shardplan {
namespace {

constexpr std::string_view kEngine = "deepspeed/runtime/engine.py _configure_basic_optimizer";
constexpr std::string_view kSchedules = "deepspeed/runtime/lr_schedules.py";

std::vector<Edit> dynamic_scale(const Diagnostic& finding, const Json&) {
  return {set_key(finding.key, 0)};
}

std::vector<Edit> clip_gradients(const Diagnostic& finding, const Json& document) {
  if (value_at(document, "gradient_clipping") != nullptr) return {remove_key(finding.key)};
  return {rename_key(finding.key, "gradient_clipping")};
}

std::vector<Edit> allow_untested(const Diagnostic&, const Json&) {
  return {set_key("zero_allow_untested_optimizer", true)};
}

constexpr Rule kRules[] = {
    {"ds.unknown-optimizer"_rule, Severity::error, "No such optimizer",
     "The name is neither one of DeepSpeed's nor a class of torch.optim.", kEngine,
     "Correct the name; DeepSpeed's own ignore case, torch's do not.", repair::set_nearest},
    {"ds.untested-optimizer"_rule, Severity::error, "An optimizer that ZeRO was not tested with",
     "DeepSpeed refuses it unless it is told that this is known.",
     "deepspeed/runtime/engine.py _do_optimizer_sanity_check",
     "Set zero_allow_untested_optimizer, or take Adam, AdamW, Adagrad, Lion or Muon.",
     allow_untested},
    {"ds.optimizer-without-type"_rule, Severity::warning, "An optimizer block without a type",
     "DeepSpeed then expects the program to bring the optimizer, and ignores the block.",
     "deepspeed/runtime/config.py get_optimizer_name", "Set optimizer.type."},
    {"ds.optimizer-from-program"_rule, Severity::note,
     "The offloaded optimizer is the program's to bring",
     "Without an optimizer block the program must make DeepSpeedCPUAdam itself; another optimizer "
     "stops the job unless zero_force_ds_cpu_optimizer is false.",
     "deepspeed/runtime/engine.py _configure_optimizer", "Add an optimizer block to be safe."},
    {"ds.max-grad-norm"_rule, Severity::error, "max_grad_norm inside optimizer.params",
     "It is no argument of the optimizer: DeepSpeed zeroes or refuses it, and nothing is clipped.",
     "deepspeed/runtime/config.py _do_warning_check, engine.py _configure_basic_optimizer",
     "Use gradient_clipping at the top level.", clip_gradients},
    {"ds.one-bit-with-zero"_rule, Severity::error, "A 1-bit optimizer with ZeRO",
     "Compressed communication needs whole states on every rank.",
     "deepspeed/runtime/engine.py _configure_basic_optimizer",
     "Use stage 0, or another optimizer."},
    {"ds.one-bit-without-fp16"_rule, Severity::warning, "A 1-bit optimizer without fp16",
     "The 1-bit optimizers were written for, and are tested with, fp16.",
     "docs/_tutorials/onebit-adam.md", "Enable fp16."},
    {"ds.lamb-static-scale"_rule, Severity::error, "LAMB with a static loss scale",
     "Its fused optimizer runs with dynamic loss scaling only.",
     "deepspeed/runtime/engine.py _configure_fp16_optimizer", "Set fp16.loss_scale to 0.",
     dynamic_scale},
    {"ds.fused-adam-amsgrad"_rule, Severity::error, "FusedAdam has no amsgrad",
     "Its constructor raises an error.", "deepspeed/ops/adam/fused_adam.py",
     "Remove amsgrad, or set optimizer.params.torch_adam."},
    {"ds.cpu-adam-amsgrad"_rule, Severity::warning, "CPU Adam ignores amsgrad",
     "The argument is taken and never used.", "deepspeed/ops/adam/cpu_adam.py", "Remove it.",
     repair::remove_it},
    {"ds.fp32-states-without-cpu-adam"_rule, Severity::error,
     "fp32_optimizer_states for another optimizer than CPU Adam",
     "Only DeepSpeedCPUAdam has the argument; others refuse it.", "deepspeed/ops/adam/cpu_adam.py",
     "Remove it, or offload the optimizer.", repair::remove_it},
    {"ds.torch-adam-offloaded"_rule, Severity::warning, "torch's Adam on the host",
     "The offloaded step runs in torch.optim, several times slower than DeepSpeed's CPU Adam.",
     kEngine, "Remove optimizer.params.torch_adam.", repair::remove_it},
    {"ds.muon-reduce-scatter"_rule, Severity::error, "Muon at stage 3 with reduce_scatter",
     "Muon needs whole gradients.", "deepspeed/runtime/zero/stage3.py __init__",
     "Set zero_optimization.reduce_scatter to false."},
    {"ds.muon-offloaded"_rule, Severity::error, "Offloaded Muon with reduce_scatter",
     "Muon needs whole gradients.", "deepspeed/runtime/zero/stage_1_and_2.py __init__",
     "Set zero_optimization.reduce_scatter to false, or do not offload."},
    {"ds.unknown-scheduler"_rule, Severity::error, "No such scheduler",
     "The name is neither one of DeepSpeed's five nor a class of torch.optim.lr_scheduler.",
     "deepspeed/runtime/engine.py _scheduler_from_config", "Correct the name.",
     repair::set_nearest},
    {"ds.scheduler-without-type"_rule, Severity::warning, "A scheduler block without a type",
     "The block is ignored, and the learning rate stays constant.",
     "deepspeed/runtime/config.py get_scheduler_name", "Set scheduler.type."},
    {"ds.scheduler-argument"_rule, Severity::error, "An argument of another scheduler",
     "Arguments are passed by name; the class raises a TypeError.", kSchedules,
     "Remove it, or choose the scheduler that has it."},
    {"ds.scheduler-argument-missing"_rule, Severity::error, "An argument that the scheduler needs",
     "The class has no default for it and raises a TypeError.", kSchedules, "Give it a value."},
    {"ds.warmup-steps"_rule, Severity::error, "A warm-up of no steps",
     "From 0.19.3 on the schedulers refuse it; before, the warm-up divided by the logarithm of it.",
     kSchedules, "Set warmup_num_steps to 1 or more."},
};

}  // namespace

std::span<const Rule> optimizer_rules() {
  return kRules;
}

}  // namespace shardplan
