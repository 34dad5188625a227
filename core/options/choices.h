// The names that jobs have for the values of enumerations, each in the order it is shown in.
#pragma once

#include <algorithm>
#include <array>

#include "options/option.h"
#include "plan/plan.h"

namespace shardplan {

/// One value of an enumeration whose name_of gives its name.
template <typename Enum>
constexpr NamedValue named(Enum value, std::string_view label = {}) {
  return {name_of(value), static_cast<std::int64_t>(value), label};
}
template <typename T>
constexpr NamedValue named(std::string_view name, T value, std::string_view label = {}) {
  return {name, static_cast<std::int64_t>(value), label};
}

/// The rows of a table of formats that have all of `Uses`, by their place in it.
template <const auto& Formats, unsigned Uses>
consteval auto named_formats() {
  constexpr auto has_uses = [](const NumberFormat& f) { return (f.uses & Uses) == Uses; };
  std::array<NamedValue, std::ranges::count_if(Formats, has_uses)> names;
  std::size_t next = 0;
  for (std::size_t i = 0; i < Formats.size(); ++i)
    if (has_uses(Formats[i]))
      names[next++] = named(Formats[i].name, i, Formats[i].name == "none" ? "as computed" : "");
  return names;
}

/// Element types that states, gradients and products can have.
inline constexpr auto kStateTypes = named_formats<kDTypes, kTrainingType>();
/// How weights that nothing trains are stored, and those of a frozen base under LoRA.
inline constexpr auto kWeightFormats = named_formats<kStoredFormats, kWeightStore>();
inline constexpr auto kBaseFormats = named_formats<kStoredFormats, kBaseStore>();

inline constexpr std::array kWorkKinds{
    named("train", WorkKind::train, "training"),
    named("inference", WorkKind::inference, "generation"),
    named("rlhf", WorkKind::rlhf, "reinforcement learning, preferences")};
inline constexpr std::array kMethods{named("full", 0, "full fine-tuning"),
                                     named("lora", 1, "LoRA")};
inline constexpr std::array kCacheTypes{named("auto", false, "as computed"), named("fp8", true)};

inline constexpr std::array kAttentionKinds{named("sdpa", AttentionKind::sdpa, "fused (SDPA)"),
                                            named("eager", AttentionKind::eager, "eager")};
inline constexpr std::array kLossKinds{
    named("cross_entropy", LossKind::cross_entropy, "cross-entropy"),
    named("fused_linear", LossKind::fused_linear, "fused with the head")};
inline constexpr std::array kCheckpointings{named(Checkpointing::none, "none"),
                                            named(Checkpointing::selective, "selective"),
                                            named(Checkpointing::full, "every block")};
inline constexpr std::array kCheckpointPolicies{
    named(Checkpointing::none), named(Checkpointing::selective), named(Checkpointing::full),
    named(Checkpointing::selective_op), named(Checkpointing::blocks)};

inline constexpr std::array kSchedules{named(PipelineSchedule::gpipe),
                                       named(PipelineSchedule::one_f_one_b),
                                       named(PipelineSchedule::interleaved)};
inline constexpr std::array kBalances{named(StageBalance::blocks),
                                      named(StageBalance::blocks_and_ends),
                                      named(StageBalance::parameters)};

inline constexpr std::array kImplementations{named("fused", OptimizerImplementation::fused),
                                             named("foreach", OptimizerImplementation::foreach),
                                             named("for-loop", OptimizerImplementation::for_loop)};

inline constexpr std::array kOffloadDevices{named(OffloadDevice::none, "on the GPUs"),
                                            named(OffloadDevice::cpu, "on the host"),
                                            named(OffloadDevice::nvme, "on NVMe")};

}  // namespace shardplan
