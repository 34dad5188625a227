#include "optimizers/registry.h"

#include <algorithm>
#include <array>

#include "base/nearest.h"

namespace shardplan {

// A line here and a row below for each; its file has the rest.
namespace adamw {
extern const OptimizerDescription kDescription;
}
namespace adam {
extern const OptimizerDescription kDescription;
}
namespace sgd {
extern const OptimizerDescription kDescription;
}
namespace adagrad {
extern const OptimizerDescription kDescription;
}
namespace adafactor {
extern const OptimizerDescription kDescription;
}
namespace adafactor_transformers {
extern const OptimizerDescription kDescription;
}
namespace lion {
extern const OptimizerDescription kDescription;
}
namespace lamb {
extern const OptimizerDescription kDescription;
}
namespace adamw_8bit {
extern const OptimizerDescription kDescription;
}
namespace paged_adamw {
extern const OptimizerDescription kDescription;
}
namespace paged_adamw_8bit {
extern const OptimizerDescription kDescription;
}
namespace adamw_4bit {
extern const OptimizerDescription kDescription;
}
namespace muon {
extern const OptimizerDescription kDescription;
}
namespace soap {
extern const OptimizerDescription kDescription;
}

namespace {

constexpr std::array kOptimizers{
    &adamw::kDescription,
    &adam::kDescription,
    &sgd::kDescription,
    &adagrad::kDescription,
    &adafactor::kDescription,
    &adafactor_transformers::kDescription,
    &lion::kDescription,
    &lamb::kDescription,
    &adamw_8bit::kDescription,
    &paged_adamw::kDescription,
    &paged_adamw_8bit::kDescription,
    &adamw_4bit::kDescription,
    &muon::kDescription,
    &soap::kDescription,
};

}  // namespace

const OptimizerDescription& default_optimizer() {
  return adamw::kDescription;
}

std::span<const OptimizerDescription* const> optimizers() {
  return kOptimizers;
}

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

void set_option(Optimizer& optimizer, std::string_view key, double value) {
  const std::span<const OptimizerOption> all = optimizer.kind->options;
  const auto found = std::ranges::find(all, key, &OptimizerOption::key);
  if (found != all.end()) optimizer.options[static_cast<std::size_t>(found - all.begin())] = value;
}

double option_of(const Optimizer& optimizer, std::string_view key) {
  const std::span<const OptimizerOption> all = optimizer.kind->options;
  const auto found = std::ranges::find(all, key, &OptimizerOption::key);
  return optimizer.options[static_cast<std::size_t>(found - all.begin())];
}

}  // namespace shardplan
