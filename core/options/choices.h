// The names that jobs have for the values of enumerations, each in the order it is shown in.
#pragma once

#include <algorithm>
#include <array>

#include "options/option.h"
#include "plan/plan.h"
#include "plan/sent_modules.h"
#include "saving/rules.h"

namespace shardplan {

/// One value of an enumeration whose name_of gives its name.
template <typename Enum>
constexpr NamedValue named(Enum value, std::string_view label = {}) {
  return {name_of(value), static_cast<std::int64_t>(value), label};
}
/// The same, with other words that people have for it.
constexpr NamedValue spoken(NamedValue value, std::string_view also) {
  value.also = also;
  return value;
}
template <typename T>
constexpr NamedValue named(std::string_view name, T value, std::string_view label = {}) {
  return {name, static_cast<std::int64_t>(value), label};
}

/// accelerate's names stand beside the plain ones.
inline constexpr std::array kStateDictTypes{
    spoken(named("sharded", StateDictType::sharded), "sharded_state_dict"),
    spoken(named("full", StateDictType::full), "full_state_dict"),
};

/// The rows of a table of formats that have all of `Uses`, by their place in it.
template <const auto& Formats, unsigned Uses>
consteval auto named_formats() {
  constexpr auto has_uses = [](const NumberFormat& f) { return (f.uses & Uses) == Uses; };
  std::array<NamedValue, std::ranges::count_if(Formats, has_uses)> names;
  std::size_t next = 0;
  for (std::size_t i = 0; i < Formats.size(); ++i)
    if (has_uses(Formats[i]))
      names[next++] =
          spoken(named(Formats[i].name, i, Formats[i].name == "none" ? "as computed" : ""),
                 Formats[i].spoken);
  return names;
}

/// Element types that states, gradients and products can have.
inline constexpr auto kStateTypes = named_formats<kDTypes, kTrainingType>();
/// How weights that nothing trains are stored, and those of a frozen base under LoRA.
inline constexpr auto kWeightFormats = named_formats<kStoredFormats, kWeightStore>();
inline constexpr auto kBaseFormats = named_formats<kStoredFormats, kBaseStore>();

inline constexpr std::array kWorkKinds{
    spoken(named("train", WorkKind::train, "training"), "finetune sft pretrain"),
    spoken(named("inference", WorkKind::inference, "generation"), "generate generation infer"),
    spoken(named("rlhf", WorkKind::rlhf, "reinforcement learning, preferences"), "rl")};
inline constexpr std::array kMethods{
    spoken(named("full", 0, "full fine-tuning"), "full_finetune finetune sft"),
    spoken(named("lora", 1, "LoRA"), "qlora peft")};
inline constexpr std::array kCacheTypes{named("auto", false, "as computed"), named("fp8", true)};

inline constexpr std::array kFrozenParts{
    named("nothing", FrozenParts::nothing),
    spoken(named("tower", FrozenParts::tower), "vision_tower vit"),
    spoken(named("tower_and_projector", FrozenParts::tower_and_projector, "tower and projector"),
           "vision_tower_and_projector")};

inline constexpr std::array kAttentionKinds{
    spoken(
        named("sdpa", AttentionKind::sdpa, "fused (SDPA)"),
        "flash_attention_2 flash_attention_3 flash_attention flash_attn flash_attn_2 flash_attn_3 "
        "flash2 fa2 fa3 fused xformers"),
    spoken(named("eager", AttentionKind::eager, "eager"), "math vanilla unfused")};
inline constexpr std::array kSdpaKernels{
    spoken(named("cudnn_attention", SdpaKernel::cudnn_attention, "cuDNN's (PyTorch 2.11 on)"),
           "cudnn"),
    spoken(named("flash_attention", SdpaKernel::flash_attention, "PyTorch's FlashAttention-2"),
           "flash"),
    spoken(named("flash_attn", SdpaKernel::flash_attn, "the package flash-attn 2"),
           "flash_attn_2 flash_attention_2 fa2")};
inline constexpr std::array kStateKernels{
    named("torch", StateKernels::torch),
    spoken(named("fused", StateKernels::fused),
           "mamba_ssm causal_conv1d fla flash_linear_attention installed")};
inline constexpr std::array kLossKinds{
    named("cross_entropy", LossKind::cross_entropy, "cross-entropy"),
    spoken(named("fused_linear", LossKind::fused_linear, "fused with the head"),
           "fused_linear_cross_entropy chunked cut_cross_entropy"),
    spoken(named("tiled", LossKind::tiled, "over parts of the rows"),
           "tiled_fused_logits_loss tiled_loss")};
/// The names of Megatron-LM's --offload-modules.
inline constexpr std::array kSentModules{
    named("attn_norm", SentModule::attn_norm), named("qkv_linear", SentModule::qkv_linear),
    named("core_attn", SentModule::core_attn), named("attn_proj", SentModule::attn_proj),
    named("mlp_norm", SentModule::mlp_norm)};
inline constexpr std::array kCheckpointings{named(Checkpointing::none, "none"),
                                            named(Checkpointing::selective, "selective"),
                                            named(Checkpointing::full, "every block")};
inline constexpr std::array kCheckpointPolicies{
    named(Checkpointing::none), named(Checkpointing::selective), named(Checkpointing::full),
    named(Checkpointing::selective_op), named(Checkpointing::blocks)};

/// The words of TRL, torchtune and axolotl stand beside the plain ones.
inline constexpr std::array kActivationOffloadings{
    spoken(named(ActivationOffloading::none, "on the GPU"), "false no off"),
    spoken(named(ActivationOffloading::streams, "on the host"), "true yes on"),
    spoken(named(ActivationOffloading::one_stream, "on the host, the GPU waiting"), "legacy")};

inline constexpr std::array kSchedules{
    named(PipelineSchedule::gpipe), named(PipelineSchedule::one_f_one_b),
    named(PipelineSchedule::interleaved), spoken(named(PipelineSchedule::zbv), "zbvzerobubble")};
inline constexpr std::array kBalances{named(StageBalance::blocks),
                                      named(StageBalance::blocks_and_ends),
                                      named(StageBalance::parameters)};

inline constexpr std::array kImplementations{named("fused", OptimizerImplementation::fused),
                                             named("foreach", OptimizerImplementation::foreach),
                                             named("for-loop", OptimizerImplementation::for_loop)};

inline constexpr std::array kOffloadDevices{
    spoken(named(OffloadDevice::none, "on the GPUs"), "gpu cuda no false off"),
    spoken(named(OffloadDevice::cpu, "on the host"), "host ram dram true yes on"),
    spoken(named(OffloadDevice::nvme, "on NVMe"), "ssd")};

}  // namespace shardplan
