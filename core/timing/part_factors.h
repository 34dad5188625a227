// How many times as long one machine takes for each kind of work that a step is made of, beside the
// machine that a model's rates were fitted on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "timing/rates.h"

namespace shardplan {

/// What a step waits for. Each can be slower on a machine than its datasheet says, by itself.
enum class StepPart : std::uint8_t { kernels, host, links, copies, host_optimizer, drives };
inline constexpr std::size_t kStepParts = 6;
inline constexpr std::array<std::string_view, kStepParts> kStepPartNames{
    "kernels", "host", "links", "copies", "host_optimizer", "drives"};

constexpr std::size_t index_of(StepPart part) {
  return static_cast<std::size_t>(part);
}

/// By StepPart; 1: as fitted.
using PartFactors = std::array<double, kStepParts>;
inline constexpr PartFactors kAsFitted{1, 1, 1, 1, 1, 1};

/// Python, launches, hooks and collectives' starts: every time of the host but the optimizers'
/// rates.
void slow_host(HostRates& host, double factor);

/// The same rates, every time of each part multiplied by its factor.
TimeRates slowed_down(TimeRates rates, const PartFactors& factors);

}  // namespace shardplan
