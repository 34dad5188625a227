// Who turns "auto" into values before DeepSpeed reads a ds_config.
#pragma once

#include <array>
#include <cstdint>

#include "options/option.h"

namespace shardplan {

enum class AutoResolver : std::uint8_t { none, hf_trainer, accelerate };

/// "nobody" is an earlier spelling, still read.
inline constexpr std::array kAutoResolvers{
    NamedValue{"hf_trainer", static_cast<std::int64_t>(AutoResolver::hf_trainer)},
    NamedValue{"accelerate", static_cast<std::int64_t>(AutoResolver::accelerate)},
    NamedValue{.name = "none",
               .value = static_cast<std::int64_t>(AutoResolver::none),
               .former = "nobody"}};

constexpr std::string_view name_of(AutoResolver resolver) {
  for (const NamedValue& choice : kAutoResolvers)
    if (choice.value == static_cast<std::int64_t>(resolver)) return choice.name;
  return "";
}

}  // namespace shardplan
