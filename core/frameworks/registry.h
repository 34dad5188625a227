// All frameworks, and the traits of each.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "frameworks/traits.h"
#include "plan/plan.h"

namespace shardplan {

/// In the order of FrameworkKind.
std::span<const FrameworkTraits* const> all_frameworks();

const FrameworkTraits& traits_of(FrameworkKind kind);
inline const FrameworkTraits& traits_of(const Framework& framework) {
  return traits_of(framework.kind);
}
inline const FrameworkTraits& traits_of(const Plan& plan) {
  return traits_of(plan.framework);
}

/// The name used in job files.
inline std::string_view name_of(FrameworkKind kind) {
  return traits_of(kind).name;
}

/// What runs a job that does not say: plain PyTorch on one GPU, DeepSpeed on several.
FrameworkKind default_framework(std::int64_t world);

/// The framework of that name.
std::optional<FrameworkKind> framework_named(std::string_view name);

inline Support support_of(FrameworkKind kind, Degree degree) {
  return traits_of(kind).degrees.of(degree);
}

/// ZeRO's options where they decide how the plan's states are kept; else null.
inline const ZeroOptions* zero_options(const Plan& plan) {
  return traits_of(plan).has_zero ? &plan.framework.deepspeed.zero : nullptr;
}

/// ZeRO stage 3: parameters are in shards, on GPUs or elsewhere, also those that nothing trains.
inline bool is_zero3(const Plan& plan) {
  const ZeroOptions* zero = zero_options(plan);
  return zero != nullptr && zero->stage == 3;
}

}  // namespace shardplan
