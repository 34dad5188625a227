#include "frameworks/registry.h"

#include <array>

namespace shardplan {

extern const FrameworkTraits kSingleTraits, kDdpTraits, kFsdp2Traits, kDeepSpeedTraits,
    kNativeTraits, kMegatronTraits, kFsdp1Traits;

namespace {

constexpr std::array<const FrameworkTraits*, kFrameworkCount> kFrameworks{
    &kSingleTraits, &kDdpTraits,      &kFsdp2Traits, &kDeepSpeedTraits,
    &kNativeTraits, &kMegatronTraits, &kFsdp1Traits,
};

}  // namespace

std::span<const FrameworkTraits* const> all_frameworks() {
  return kFrameworks;
}

const FrameworkTraits& traits_of(FrameworkKind kind) {
  return *kFrameworks[static_cast<std::size_t>(kind)];
}

FrameworkKind default_framework(std::int64_t world) {
  return world == 1 ? FrameworkKind::single : FrameworkKind::deepspeed;
}

std::optional<FrameworkKind> framework_named(std::string_view name) {
  for (const FrameworkTraits* traits : kFrameworks)
    if (traits->name.get() == name) return traits->kind;
  return std::nullopt;
}

}  // namespace shardplan
