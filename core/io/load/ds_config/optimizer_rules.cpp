#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/nearest.h"
#include "load/ds_config/rules.h"
#include "load/ds_config/schema.h"

namespace shardplan {
namespace {

/// runtime/config.py DEEPSPEED_OPTIMIZERS, in the spelling of its documentation.
constexpr std::array<std::string_view, 12> kDeepSpeedOptimizers{
    "Adam",       "AdamW",       "Adagrad", "Lamb",    "Lion",  "OneBitAdam",
    "OneBitLamb", "ZeroOneAdam", "MuAdam",  "MuAdamW", "MuSGD", "Muon"};
/// Classes of torch.optim, which engine.py looks up by name.
constexpr std::array<std::string_view, 11> kTorchOptimizers{
    "Adadelta", "Adafactor", "Adamax", "ASGD", "LBFGS",     "NAdam",
    "RAdam",    "RMSprop",   "Rprop",  "SGD",  "SparseAdam"};
constexpr std::array<std::string_view, 5> kDeepSpeedSchedulers{
    "LRRangeTest", "OneCycle", "WarmupLR", "WarmupDecayLR", "WarmupCosineLR"};
constexpr std::array<std::string_view, 14> kTorchSchedulers{
    "LambdaLR",          "MultiplicativeLR", "StepLR",        "MultiStepLR",
    "ConstantLR",        "LinearLR",         "ExponentialLR", "CosineAnnealingLR",
    "ReduceLROnPlateau", "CyclicLR",         "OneCycleLR",    "CosineAnnealingWarmRestarts",
    "PolynomialLR",      "SequentialLR"};

template <typename Names>
bool contains(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The lower-case name of a DeepSpeed optimizer, or "" for another class.
std::string deepspeed_name(std::string_view type) {
  for (const std::string_view name : kDeepSpeedOptimizers)
    if (name.size() == type.size() && normalized(name) == normalized(type)) return normalized(name);
  return {};
}

template <std::size_t N, std::size_t M>
std::string nearest_of(std::string_view name, const std::array<std::string_view, N>& first,
                       const std::array<std::string_view, M>& second) {
  const std::string near = nearest(name, std::span<const std::string_view>(first));
  return near.empty() ? nearest(name, std::span<const std::string_view>(second)) : near;
}

/// zero/utils.py ZERO_SUPPORTED_OPTIMIZERS.
bool tested_with_zero(const std::string& name) {
  for (const char* tested : {"adam", "adamw", "adagrad", "lion", "muon"})
    if (name == tested) return true;
  return false;
}

bool offloaded(const DsValues& values) {
  return values.maybe_text("zero_optimization.offload_optimizer.device").value_or("none") != "none";
}

/// engine.py _configure_basic_optimizer, _do_sanity_check.
void check_one_bit_and_lamb(const std::string& name, const DsValues& values, DsFindings& findings) {
  const bool one_bit = name.starts_with("onebit") || name == "zerooneadam";
  if (one_bit && values.stage() > 0)
    findings.error("ds.one-bit-with-zero"_rule, "optimizer.type",
                   say("the 1-bit optimizers do not work with ZeRO stage {}", values.stage()),
                   "stage 0, or another optimizer");
  if (one_bit && !values.flag("fp16.enabled"))
    findings.warning("ds.one-bit-without-fp16"_rule, "optimizer.type",
                     "the 1-bit optimizers are tried only with fp16");
  if ((name == "lamb" || name == "onebitlamb") && values.number("fp16.loss_scale") != 0)
    findings.error("ds.lamb-static-scale"_rule, "fp16.loss_scale",
                   "LAMB needs dynamic loss scaling", "0");
}

void check_adam_arguments(const std::string& name, const DsValues& values, DsFindings& findings) {
  if (name != "adam" && name != "adamw") return;
  const bool torch = values.flag("optimizer.params.torch_adam");
  const bool fused = !torch && !offloaded(values);
  if (fused && values.flag("optimizer.params.amsgrad"))
    findings.error("ds.fused-adam-amsgrad"_rule, "optimizer.params.amsgrad",
                   "FusedAdam has no amsgrad", "false, or optimizer.params.torch_adam");
  if (!torch && offloaded(values) && values.flag("optimizer.params.amsgrad"))
    findings.warning("ds.cpu-adam-amsgrad"_rule, "optimizer.params.amsgrad",
                     "has no effect: CPU Adam has no amsgrad");
  if ((fused || torch) && values.given("optimizer.params.fp32_optimizer_states") != nullptr)
    findings.error(
        "ds.fp32-states-without-cpu-adam"_rule, "optimizer.params.fp32_optimizer_states",
        say("only CPU Adam takes it, and this is {}", torch ? "torch.optim" : "FusedAdam"),
        "zero_optimization.offload_optimizer, or no such key");
  if (torch && offloaded(values))
    findings.warning("ds.torch-adam-offloaded"_rule, "optimizer.params.torch_adam",
                     "the offloaded step runs in torch.optim, much slower than CPU Adam");
}

/// zero/stage3.py and zero/stage_1_and_2.py __init__.
void check_muon(const std::string& name, const DsValues& values, DsFindings& findings) {
  if (name != "muon" || !values.flag("zero_optimization.reduce_scatter")) return;
  if (values.stage() == 3)
    findings.error("ds.muon-reduce-scatter"_rule, "optimizer.type",
                   "Muon at stage 3 does not work with reduce_scatter",
                   "zero_optimization.reduce_scatter false");
  else if (values.stage() > 0 && offloaded(values))
    findings.error("ds.muon-offloaded"_rule, "optimizer.type",
                   "offloaded Muon does not work with reduce_scatter",
                   "zero_optimization.reduce_scatter false, or no offload_optimizer");
}

void check_optimizer(const DsValues& values, const DsConfigContext& context, DsFindings& findings) {
  if (values.given("optimizer") == nullptr) {
    if (offloaded(values) && context.auto_resolver == AutoResolver::nobody &&
        values.flag("zero_force_ds_cpu_optimizer"))
      findings.note("ds.optimizer-from-program"_rule, "optimizer",
                    "not in the file: the program must bring DeepSpeedCPUAdam, "
                    "because the optimizer is offloaded");
    return;
  }
  const auto type = values.maybe_text("optimizer.type");
  if (!type) {
    findings.warning("ds.optimizer-without-type"_rule, "optimizer", "has no effect without 'type'",
                     "optimizer.type");
    return;
  }
  const std::string name = deepspeed_name(*type);
  if (name.empty() && !contains(kTorchOptimizers, *type)) {
    findings.error(
        "ds.unknown-optimizer"_rule, "optimizer.type", say("unknown optimizer '{}'", *type),
        say("one of {} or a class of torch.optim", fmt::join(kDeepSpeedOptimizers, ", ")),
        nearest_of(*type, kDeepSpeedOptimizers, kTorchOptimizers));
    return;
  }
  if (values.stage() > 0 && !tested_with_zero(name) &&
      !values.flag("zero_allow_untested_optimizer") && !name.starts_with("onebit") &&
      name != "zerooneadam")
    findings.error("ds.untested-optimizer"_rule, "optimizer.type",
                   say("ZeRO was not tested with {} and refuses it", *type),
                   "'zero_allow_untested_optimizer': true");
  if (values.given("optimizer.params.max_grad_norm") != nullptr)
    findings.error("ds.max-grad-norm"_rule, "optimizer.params.max_grad_norm",
                   "not an argument of the optimizer", "'gradient_clipping' at the top level");
  check_one_bit_and_lamb(name, values, findings);
  check_adam_arguments(name, values, findings);
  check_muon(name, values, findings);
}

/// The arguments of lr_schedules.py's classes, which engine.py hands on by name.
void check_scheduler_arguments(const std::string& type, const DsValues& values,
                               std::span<const ResolvedAuto> autos, DsFindings& findings) {
  const auto resolved_later = [&](const std::string& path) {
    return std::any_of(autos.begin(), autos.end(),
                       [&](const ResolvedAuto& a) { return a.path == path; });
  };
  const DsNode* params = ds_schema().find("scheduler.params");
  for (const DsNode& key : params->children) {
    const bool takes = contains(key.applies_to, type);
    const bool given = values.given(key.path) != nullptr;
    if (given && !takes)
      findings.error("ds.scheduler-argument"_rule, key.path, say("{} takes no such argument", type),
                     say("an argument of {}", type));
    if (key.required && takes && !given && !resolved_later(key.path))
      findings.error("ds.scheduler-argument-missing"_rule, key.path, say("{} needs it", type),
                     "a value");
  }
  const std::string warmup_key = "scheduler.params.warmup_num_steps";
  const bool supposed = std::any_of(autos.begin(), autos.end(), [&](const ResolvedAuto& a) {
    return a.path == warmup_key &&
           a.rule.text.ends_with("its default");  // the arguments are not known
  });
  const auto warmup = values.maybe_integer(warmup_key);
  if (type != "LRRangeTest" && type != "OneCycle" && warmup && *warmup < 1 && !supposed &&
      values.version() >= DeepSpeedVersion{0, 19, 3})
    findings.error("ds.warmup-steps"_rule, warmup_key, say("found {}", *warmup),
                   "an integer of at least 1");
}

void check_scheduler(const DsValues& values, std::span<const ResolvedAuto> autos,
                     DsFindings& findings) {
  if (values.given("scheduler") == nullptr) return;
  const auto type = values.maybe_text("scheduler.type");
  if (!type) {
    findings.warning("ds.scheduler-without-type"_rule, "scheduler", "has no effect without 'type'",
                     "scheduler.type");
    return;
  }
  if (contains(kDeepSpeedSchedulers, *type))
    check_scheduler_arguments(*type, values, autos, findings);
  else if (!contains(kTorchSchedulers, *type))
    findings.error("ds.unknown-scheduler"_rule, "scheduler.type",
                   say("unknown scheduler '{}'", *type),
                   say("one of {} or a class of torch.optim.lr_scheduler",
                       fmt::join(kDeepSpeedSchedulers, ", ")),
                   nearest_of(*type, kDeepSpeedSchedulers, kTorchSchedulers));
}

}  // namespace

void check_optimizer_rules(const DsValues& values, const DsConfigContext& context,
                           std::span<const ResolvedAuto> autos, DsFindings& findings) {
  check_optimizer(values, context, findings);
  check_scheduler(values, autos, findings);
}

}  // namespace shardplan
