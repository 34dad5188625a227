// optimizer and scheduler.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "load/ds_config/subject.h"

namespace shardplan::config_rules::optimizer {

inline constexpr std::string_view kEngine =
    "deepspeed/runtime/engine.py _configure_basic_optimizer";
inline constexpr std::string_view kSchedules = "deepspeed/runtime/lr_schedules.py";

/// The optimizer of the file.
struct NamedOptimizer {
  std::string type;  ///< as it is written
  std::string name;  ///< DeepSpeed's own in lower case, or "" for a class of torch.optim
  bool known = false;

  bool one_bit() const { return name.starts_with("onebit") || name == "zerooneadam"; }
  bool adam() const { return name == "adam" || name == "adamw"; }
};

/// nullopt without a block, or without a type in it.
std::optional<NamedOptimizer> optimizer_of(const DsValues& values);

/// The same where the name is known: what is wrong with another's arguments cannot be said.
std::optional<NamedOptimizer> known_optimizer(const DsValues& values);

/// DeepSpeed's own scheduler of the file: torch's take their own arguments.
std::optional<std::string> deepspeed_scheduler(const DsValues& values);

/// engine.py _configure_basic_optimizer: FusedAdam, unless torch's or the host's Adam is asked for.
bool makes_fused_adam(const DsValues& values);

/// runtime/config.py DEEPSPEED_OPTIMIZERS, in the spelling of its documentation.
inline constexpr std::array<std::string_view, 12> kDeepSpeedOptimizers{
    "Adam",       "AdamW",       "Adagrad", "Lamb",    "Lion",  "OneBitAdam",
    "OneBitLamb", "ZeroOneAdam", "MuAdam",  "MuAdamW", "MuSGD", "Muon"};
/// Classes of torch.optim, which engine.py looks up by name.
inline constexpr std::array<std::string_view, 11> kTorchOptimizers{
    "Adadelta", "Adafactor", "Adamax", "ASGD", "LBFGS",     "NAdam",
    "RAdam",    "RMSprop",   "Rprop",  "SGD",  "SparseAdam"};
inline constexpr std::array<std::string_view, 5> kDeepSpeedSchedulers{
    "LRRangeTest", "OneCycle", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR"};
inline constexpr std::array<std::string_view, 14> kTorchSchedulers{
    "LambdaLR",          "MultiplicativeLR", "StepLR",        "MultiStepLR",
    "ConstantLR",        "LinearLR",         "ExponentialLR", "CosineAnnealingLR",
    "ReduceLROnPlateau", "CyclicLR",         "OneCycleLR",    "CosineAnnealingWarmRestarts",
    "PolynomialLR",      "SequentialLR"};

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The nearest of DeepSpeed's names, else of torch's.
std::string nearest_of(std::string_view name, std::span<const std::string_view> deepspeed,
                       std::span<const std::string_view> torch);

// The rules, one file each.
ConfigRule optimizer_from_program();
ConfigRule optimizer_without_type();
ConfigRule unknown_optimizer();
ConfigRule untested_optimizer();
ConfigRule max_grad_norm();
ConfigRule one_bit_with_zero();
ConfigRule one_bit_without_fp16();
ConfigRule lamb_static_scale();
ConfigRule fused_adam_amsgrad();
ConfigRule cpu_adam_amsgrad();
ConfigRule fp32_states_without_cpu_adam();
ConfigRule torch_adam_offloaded();
ConfigRule muon_reduce_scatter();
ConfigRule muon_offloaded();
ConfigRule scheduler_without_type();
ConfigRule unknown_scheduler();
ConfigRule scheduler_argument();
ConfigRule scheduler_argument_missing();
ConfigRule warmup_steps();

// In the order in which they are checked, and listed.
std::span<const ConfigRule> all();
std::vector<Rule> listed();  // every one of the family

}  // namespace shardplan::config_rules::optimizer
