// Which kernels Liger-Kernel 0.8.5 puts into which networks: the signatures and bodies of the
// functions of liger_kernel/transformers/monkey_patch.py, called on a model that exists, as
// transformers' Trainer calls them (integrations/liger.py).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "kernels/registry.h"

namespace shardplan {

namespace fused_rms_norm_apart {
extern const FusedKernel kKernel;
}

namespace {

constexpr std::uint32_t kNorm = bit_of(KernelName::rms_norm);
constexpr std::uint32_t kRope = bit_of(KernelName::rope);
constexpr std::uint32_t kSwiglu = bit_of(KernelName::swiglu);
constexpr std::uint32_t kGeglu = bit_of(KernelName::geglu);
constexpr std::uint32_t kLoss = bit_of(KernelName::cross_entropy);
constexpr std::uint32_t kFusedLoss = bit_of(KernelName::fused_linear_cross_entropy);

constexpr std::uint32_t kLlama = kRope | kNorm | kSwiglu | kFusedLoss;
constexpr std::uint32_t kGemma = kRope | kNorm | kGeglu | kFusedLoss;
constexpr std::string_view kExperts =
    "its experts run in Liger's fused kernel, which cannot be estimated yet";

constexpr std::string_view kTowers =
    "what Liger's kernels keep of a network that reads images is not described";

/// Nemotron, most vision models and others that Liger patches are not described.
constexpr std::array kPatches{
    LigerPatch{"llama", kLlama | kLoss, kLlama},
    LigerPatch{"qwen2", kLlama | kLoss, kLlama},
    LigerPatch{"qwen3", kLlama | kLoss, kLlama},
    LigerPatch{"phi3", kLlama | kLoss, kLlama},
    // It replaces a class that modeling_mistral.py of transformers 5 does not use.
    LigerPatch{"mistral", kLlama | kLoss, kLlama, true, kLoss},
    LigerPatch{"gemma", kGemma | kLoss, kGemma},
    LigerPatch{"gemma2", kGemma | kLoss, kGemma, false},
    LigerPatch{"gemma3_text", kGemma | kLoss, kGemma, false},
    // Of OLMo 2 the norms of layers; those of queries and keys stay as they are.
    LigerPatch{"olmo2", kLlama | kLoss, kLlama, false},
    LigerPatch{"olmo3", kLlama | kLoss, kLlama, false},
    LigerPatch{"exaone4", kLlama | kLoss, kLlama, false},
    LigerPatch{"smollm3", kLlama | kLoss, kLlama},
    LigerPatch{"hunyuan_v1_dense", kLlama | kLoss, kLlama},
    // Its logits are scaled, which the fused loss does not do.
    LigerPatch{"granite", (kLlama & ~kFusedLoss) | kLoss, (kLlama & ~kFusedLoss) | kLoss, true, 0,
               kFusedLoss},
    LigerPatch{"ministral", kLlama | kLoss, kLlama, true, kLoss},
    LigerPatch{"glm4", kNorm | kSwiglu | kFusedLoss | kLoss, kNorm | kSwiglu | kFusedLoss, false},
    LigerPatch{"mixtral", kLlama | kLoss, kLlama, true, 0, 0, kExperts},
    LigerPatch{"qwen3_moe", kLlama | kLoss, kLlama, true, 0, 0, kExperts},
    LigerPatch{"deepseek_v2", kNorm | kSwiglu | kFusedLoss | kLoss, kNorm | kSwiglu | kFusedLoss,
               true, 0, 0, kExperts},
    LigerPatch{"deepseek_v3", kNorm | kSwiglu | kFusedLoss | kLoss, kNorm | kSwiglu | kFusedLoss,
               true, 0, 0, kExperts},
    LigerPatch{"qwen2_vl", kLlama | kLoss, kLlama, true, 0, 0, kTowers},
    LigerPatch{"qwen2_5_vl", kLlama | kLoss, kLlama, true, 0, 0, kTowers},
    LigerPatch{"qwen3_vl", kLlama | kLoss, kLlama, true, 0, 0, kTowers},
    LigerPatch{"qwen3_vl_moe", kLlama | kLoss, kLlama, true, 0, 0, kTowers},
    LigerPatch{"gpt_oss", kLlama | kLoss, kLlama & ~kSwiglu, true, 0, 0, kExperts},
};

std::vector<std::string_view> names_of(std::uint32_t names) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < kKernelNames; ++i)
    if ((names >> i & 1U) != 0) words.push_back(fused_kernels()[i]->name);
  return words;
}

std::string listed(std::uint32_t names) {
  return fmt::format("{}", fmt::join(names_of(names), ", "));
}

std::vector<std::string_view> patched_types() {
  std::vector<std::string_view> types;
  for (const LigerPatch& patch : kPatches)
    if (patch.refused.empty()) types.push_back(patch.model_type);
  return types;
}

}  // namespace

const LigerPatch* find_liger_patch(std::string_view model_type) {
  const auto* found = std::ranges::find(kPatches, model_type, &LigerPatch::model_type);
  return found == kPatches.end() ? nullptr : found;
}

FusedKernels kernels_of(std::string_view model_type, const KernelRequest& request) {
  FusedKernels kernels{};
  const LigerPatch* patch = request.any() ? find_liger_patch(model_type) : nullptr;
  if (patch == nullptr) return kernels;
  const std::uint32_t wanted = request.patches ? patch->usual : request.names & patch->takes;
  for (std::size_t i = 0; i < kKernelNames; ++i)
    if (((wanted & ~patch->without_effect) >> i & 1U) != 0) kernels[i] = fused_kernels()[i];
  const auto norm = static_cast<std::size_t>(KernelName::rms_norm);
  if (kernels[norm] != nullptr && !patch->norms_in_place)
    kernels[norm] = &fused_rms_norm_apart::kKernel;
  return kernels;
}

std::optional<DivisionProblem> kernel_problem(std::string_view model_type,
                                              const KernelRequest& request) {
  if (!request.any()) return std::nullopt;
  const LigerPatch* patch = find_liger_patch(model_type);
  if (patch == nullptr)
    return DivisionProblem{
        "kernels",
        fmt::format(
            "Liger-Kernel 0.8.5 has no kernels for model type {}: transformers 5.17 goes on "
            "with PyTorch's and says so at the log level info only",
            model_type.empty() ? "none" : model_type),
        fmt::format("torch, or a model of type {}", fmt::join(patched_types(), ", "))};
  if (!patch->refused.empty())
    return DivisionProblem{"kernels", say("{}: {}", model_type, patch->refused), "torch"};
  if (const std::uint32_t stops = request.names & patch->stops; stops != 0)
    return DivisionProblem{
        "kernels",
        fmt::format("Liger-Kernel 0.8.5 stops: {} is not implemented for model type {}",
                    listed(stops), model_type),
        listed(patch->takes)};
  if (const std::uint32_t unknown = request.names & ~patch->takes; unknown != 0)
    return DivisionProblem{
        "kernels",
        fmt::format("Liger-Kernel 0.8.5 has no {} for model type {} and leaves it out without a "
                    "word",
                    listed(unknown), model_type),
        listed(patch->takes)};
  if ((request.names & kLoss) != 0 && (request.names & kFusedLoss) != 0)
    return DivisionProblem{"kernels",
                           "Liger-Kernel 0.8.5 stops: cross_entropy and fused_linear_cross_entropy "
                           "cannot both be on",
                           "one of the two"};
  if (const std::uint32_t idle = request.names & patch->without_effect; idle != 0)
    return DivisionProblem{
        "kernels",
        fmt::format("Liger-Kernel 0.8.5's {} has no effect on model type {} in transformers 5",
                    listed(idle), model_type),
        listed(patch->takes & ~idle)};
  return std::nullopt;
}

}  // namespace shardplan
