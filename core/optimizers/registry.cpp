#include "optimizers/registry.h"

#include <algorithm>
#include <array>

#include "base/nearest.h"

namespace shardplan {

// One line here and a row below for each; the file beside has the rest.
extern const OptimizerDescription kAdamW;
extern const OptimizerDescription kAdam;
extern const OptimizerDescription kSgd;
extern const OptimizerDescription kAdagrad;
extern const OptimizerDescription kAdafactor;
extern const OptimizerDescription kLion;
extern const OptimizerDescription kLamb;
extern const OptimizerDescription kAdamW8Bit;
extern const OptimizerDescription kPagedAdamW;
extern const OptimizerDescription kPagedAdamW8Bit;
extern const OptimizerDescription kAdamW4Bit;
extern const OptimizerDescription kMuon;

namespace {

constexpr std::array kOptimizers{
    &kAdamW,     &kAdam,       &kSgd,            &kAdagrad,   &kAdafactor, &kLion, &kLamb,
    &kAdamW8Bit, &kPagedAdamW, &kPagedAdamW8Bit, &kAdamW4Bit, &kMuon,
};

}  // namespace

const OptimizerDescription& default_optimizer() { return kAdamW; }

std::span<const OptimizerDescription* const> optimizers() { return kOptimizers; }

const OptimizerDescription* find_optimizer(std::string_view name) {
  const auto called = [&](const OptimizerDescription* o) {
    return o->name == name || std::ranges::find(o->spellings, name) != o->spellings.end();
  };
  const auto found = std::ranges::find_if(kOptimizers, called);
  return found == kOptimizers.end() ? nullptr : *found;
}

const OptimizerDescription* find_deepspeed_optimizer(std::string_view type) {
  const std::string name = normalized(type);
  for (const OptimizerDescription* o : kOptimizers)
    for (const std::string_view known : o->deepspeed.types)
      if (normalized(known) == name) return o;
  return nullptr;
}

const Variant& variant_of(const Optimizer& optimizer) {
  const std::span<const Variant> all = optimizer.kind->variants;
  const auto found = std::ranges::find(all, optimizer.implementation, &Variant::implementation);
  return found == all.end() ? all.front() : *found;
}

double option_of(const Optimizer& optimizer, std::string_view key) {
  const std::span<const OptimizerOption> all = optimizer.kind->options;
  const auto found = std::ranges::find(all, key, &OptimizerOption::key);
  return optimizer.options[static_cast<std::size_t>(found - all.begin())];
}

}  // namespace shardplan
