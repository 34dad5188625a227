#include "model/architectures/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/nearest.h"
#include "kernels/registry.h"
#include "model/architectures/architectures.h"

namespace shardplan {
namespace {

struct Architecture {
  std::string_view model_type;
  Model (*build)(const ModelConfig&, const BuildOptions&);
};

constexpr std::array kArchitectures{
    Architecture{"bart", build_bart},
    Architecture{"bert", build_bert},
    Architecture{"bloom", build_bloom},
    Architecture{"cohere", build_cohere},
    Architecture{"deepseek_v2", build_deepseek_v2},
    Architecture{"deepseek_v3", build_deepseek_v3},
    Architecture{"falcon", build_falcon},
    Architecture{"gemma", build_gemma},
    Architecture{"gemma2", build_gemma2},
    Architecture{"gemma3_text", build_gemma3_text},
    Architecture{"glm4", build_glm4},
    Architecture{"gpt2", build_gpt2},
    Architecture{"gpt_neo", build_gpt_neo},
    Architecture{"gpt_neox", build_gpt_neox},
    Architecture{"gpt_oss", build_gpt_oss},
    Architecture{"gptj", build_gptj},
    Architecture{"llama", build_llama},
    Architecture{"mbart", build_mbart},
    Architecture{"mistral", build_mistral},
    Architecture{"mixtral", build_mixtral},
    Architecture{"olmo2", build_olmo2},
    Architecture{"opt", build_opt},
    Architecture{"phi", build_phi},
    Architecture{"phi3", build_phi3},
    Architecture{"qwen2", build_qwen2},
    Architecture{"qwen2_moe", build_qwen2_moe},
    Architecture{"qwen3", build_qwen3},
    Architecture{"qwen3_moe", build_qwen3_moe},
    Architecture{"roberta", build_roberta},
    Architecture{"stablelm", build_stablelm},
    Architecture{"starcoder2", build_starcoder2},
    Architecture{"t5", build_t5},
    Architecture{"vit", build_vit},
    Architecture{"whisper", build_whisper},
};

/// Some families write every layer down, so an absurd number of layers would fill the memory
/// before anything could be said about it. No network comes near.
void check_layer_counts(const ModelConfig& config) {
  constexpr std::int64_t kMostLayers = 10'000;
  for (const std::string_view key : {"num_hidden_layers", "n_layer", "n_layers", "num_layers",
                                     "num_decoder_layers", "encoder_layers", "decoder_layers"})
    if (config.optional_count({key}).value_or(0) > kMostLayers)
      config.fail(key, fmt::format("found {}", *config.optional_count({key})),
                  fmt::format("at most {} layers", kMostLayers));
}

}  // namespace

std::vector<std::string> supported_model_types() {
  std::vector<std::string> names;
  for (const Architecture& a : kArchitectures) names.emplace_back(a.model_type);
  std::sort(names.begin(), names.end());
  return names;
}

Model build_model(const ModelConfig& config, const BuildOptions& options) {
  const std::string type = config.text("model_type", "");
  const auto* found = std::find_if(kArchitectures.begin(), kArchitectures.end(),
                                   [&](const Architecture& a) { return a.model_type == type; });
  if (found == kArchitectures.end()) {
    const std::vector<std::string> known = supported_model_types();
    throw InputError(
        {.file = config.file(),
         .key = "model_type",
         .message = type.empty() ? "missing" : fmt::format("unsupported model_type '{}'", type),
         .expected = fmt::format("one of {}", fmt::join(known, ", ")),
         .nearest = nearest(type, std::span<const std::string>(known))});
  }
  check_layer_counts(config);
  BuildOptions known = options;
  known.fused = kernels_of(type, options.requested);
  Model model = found->build(config, known);
  model.facts.model_type = type;
  return model;
}

}  // namespace shardplan
