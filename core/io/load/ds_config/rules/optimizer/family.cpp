#include "load/ds_config/rules/optimizer/family.h"

#include <array>

#include "base/nearest.h"

namespace shardplan::config_rules::optimizer {

std::optional<NamedOptimizer> optimizer_of(const DsValues& values) {
  const auto type = values.maybe_text("optimizer.type");
  if (values.given("optimizer") == nullptr || !type) return std::nullopt;
  NamedOptimizer optimizer{.type = *type, .known = contains(kTorchOptimizers, *type)};
  for (const std::string_view own : kDeepSpeedOptimizers)
    if (own.size() == type->size() && normalized(own) == normalized(*type))
      optimizer = {*type, normalized(own), true};
  return optimizer;
}

std::optional<NamedOptimizer> known_optimizer(const DsValues& values) {
  auto optimizer = optimizer_of(values);
  return optimizer && optimizer->known ? optimizer : std::nullopt;
}

std::optional<std::string> deepspeed_scheduler(const DsValues& values) {
  if (values.given("scheduler") == nullptr) return std::nullopt;
  auto type = values.maybe_text("scheduler.type");
  return type && contains(kDeepSpeedSchedulers, *type) ? type : std::nullopt;
}

bool makes_fused_adam(const DsValues& values) {
  return !values.flag("optimizer.params.torch_adam") && !offloads_optimizer(values);
}

std::string nearest_of(std::string_view name, std::span<const std::string_view> deepspeed,
                       std::span<const std::string_view> torch) {
  const std::string near = nearest(name, deepspeed);
  return near.empty() ? nearest(name, torch) : near;
}

std::span<const ConfigRule> all() {
  static const std::array kRules{
      optimizer_from_program(),
      optimizer_without_type(),
      unknown_optimizer(),
      untested_optimizer(),
      max_grad_norm(),
      one_bit_with_zero(),
      one_bit_without_fp16(),
      lamb_static_scale(),
      fused_adam_amsgrad(),
      cpu_adam_amsgrad(),
      fp32_states_without_cpu_adam(),
      torch_adam_offloaded(),
      muon_reduce_scatter(),
      muon_offloaded(),
      scheduler_without_type(),
      unknown_scheduler(),
      scheduler_argument(),
      scheduler_argument_missing(),
      warmup_steps(),
  };
  return kRules;
}

std::vector<Rule> listed() {
  return rules_in(all());
}

}  // namespace shardplan::config_rules::optimizer
