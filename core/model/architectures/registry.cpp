#include "model/architectures/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/nearest.h"
#include "kernels/registry.h"
#include "model/architectures/architectures.h"
#include "model/architectures/classes.h"
#include "model/positions.h"

namespace shardplan {
namespace {

enum FamilyTrait : std::uint8_t {
  kPatched = 1,    ///< Liger patches the type, and what its kernels do there is not modelled
  kOfSeveral = 2,  ///< its class builds the networks inside its configuration
};

struct Architecture {
  std::string_view model_type;
  Model (*build)(const ModelConfig&, const BuildOptions&);
  ModelClasses classes;
  std::uint8_t traits = 0;  ///< of FamilyTrait
  bool has(FamilyTrait trait) const { return (traits & trait) != 0; }
};

constexpr std::array kArchitectures{
    Architecture{"apertus", build_apertus, {"Apertus", "model.", kDecoderClasses | kTokenClass}},
    Architecture{"arcee", build_arcee, {"Arcee", "model.", kAllClasses}},
    Architecture{"bart", build_bart, {"Bart", "", kConditionalClass}},
    Architecture{"bert", build_bert, {"Bert", "", kReadByBuilder}},
    Architecture{"bloom", build_bloom, {"Bloom", "transformer.", kScoringClasses}},
    Architecture{"camembert", build_camembert, {"Camembert", "", kReadByBuilder}},
    Architecture{"clip", build_clip, {"CLIP", "", kPairClass}, kPatched | kOfSeveral},
    Architecture{"cohere", build_cohere, {"Cohere"}},
    Architecture{"cohere2", build_cohere2, {"Cohere2"}},
    Architecture{"cwm", build_cwm, {"Cwm"}},
    Architecture{"deberta-v2", build_deberta_v2, {"DebertaV2", "deberta.", kEncoderClasses}},
    Architecture{"deepseek_v2", build_deepseek_v2, {"DeepseekV2", "model.", kScoringClasses}},
    Architecture{"deepseek_v3", build_deepseek_v3, {"DeepseekV3", "model.", kAllClasses}},
    Architecture{"deepseek_v32", build_deepseek_v32, {"DeepseekV32"}},
    Architecture{"dinov2", build_dinov2, {"Dinov2", "", kReadByBuilder}},
    Architecture{"distilbert", build_distilbert, {"DistilBert", "distilbert.", kEncoderClasses}},
    Architecture{"dots1", build_dots1, {"Dots1"}},
    Architecture{"electra", build_electra, {"Electra", "electra.", kEncoderClasses}},
    Architecture{"ernie4_5", build_ernie4_5, {"Ernie4_5"}},
    Architecture{"ernie4_5_moe", build_ernie4_5_moe, {"Ernie4_5_Moe"}},
    Architecture{"exaone4", build_exaone4, {"Exaone4", "model.", kAllClasses}},
    Architecture{"falcon", build_falcon, {"Falcon", "transformer.", kScoringClasses}},
    Architecture{"falcon_h1", build_falcon_h1, {"FalconH1"}},
    Architecture{"gemma", build_gemma, {"Gemma", "model.", kAllClasses}},
    Architecture{"gemma2", build_gemma2, {"Gemma2", "model.", kAllClasses}},
    Architecture{"gemma3", build_gemma3, {"Gemma3", "", kConditionalClass}, kPatched | kOfSeveral},
    Architecture{"gemma3_text", build_gemma3_text, {"Gemma3", "model.", kScoringClasses}},
    Architecture{"gemma3n", build_gemma3n, {"Gemma3n", "", kConditionalClass}, kOfSeveral},
    Architecture{"gemma3n_text", build_gemma3n_text, {"Gemma3n"}},
    Architecture{"gemma4", build_gemma4, {"Gemma4", "", kConditionalClass}, kPatched | kOfSeveral},
    Architecture{"gemma4_text", build_gemma4_text, {"Gemma4"}, kPatched},
    Architecture{"gemma4_unified",
                 build_gemma4_unified,
                 {"Gemma4Unified", "", kConditionalClass},
                 kOfSeveral},
    Architecture{"gemma4_unified_text", build_gemma4_unified_text, {"Gemma4Unified"}},
    Architecture{"glm", build_glm, {"Glm", "model.", kAllClasses}},
    Architecture{"glm4", build_glm4, {"Glm4", "model.", kAllClasses}},
    Architecture{"glm4_moe", build_glm4_moe, {"Glm4Moe"}},
    Architecture{"glm4_moe_lite", build_glm4_moe_lite, {"Glm4MoeLite"}},
    Architecture{"glm_moe_dsa", build_glm_moe_dsa, {"GlmMoeDsa"}},
    Architecture{"gpt2", build_gpt2, {"GPT2", "transformer.", kScoringClasses}},
    Architecture{"gpt_neo", build_gpt_neo, {"GPTNeo", "transformer.", kScoringClasses}},
    Architecture{"gpt_neox", build_gpt_neox, {"GPTNeoX", "gpt_neox.", kScoringClasses}},
    Architecture{"gpt_oss", build_gpt_oss, {"GptOss", "model.", kAllClasses}},
    Architecture{"gptj", build_gptj, {"GPTJ", "transformer.", kScoringClasses}},
    Architecture{"granite", build_granite, {"Granite"}},
    Architecture{"granitemoe", build_granitemoe, {"GraniteMoe"}},
    Architecture{"granitemoehybrid", build_granitemoehybrid, {"GraniteMoeHybrid"}},
    Architecture{"granitemoeshared", build_granitemoeshared, {"GraniteMoeShared"}},
    Architecture{
        "hunyuan_v1_dense", build_hunyuan_v1_dense, {"HunYuanDenseV1", "model.", kScoringClasses}},
    Architecture{"hunyuan_v1_moe",
                 build_hunyuan_v1_moe,
                 {"HunYuanMoEV1", "model.", kScoringClasses},
                 kPatched},
    Architecture{"hyperclovax", build_hyperclovax, {"HyperCLOVAX"}},
    Architecture{"idefics3", build_idefics3, {"Idefics3", "", kConditionalClass}, kOfSeveral},
    Architecture{
        "internvl", build_internvl, {"InternVL", "", kConditionalClass}, kPatched | kOfSeveral},
    Architecture{"jais2", build_jais2, {"Jais2"}},
    Architecture{"jamba", build_jamba, {"Jamba", "model.", kScoringClasses}},
    // Its own files say so: DeepSeek V3 of another size.
    Architecture{"kimi_k2", build_deepseek_v3, {"DeepseekV3"}, kPatched},
    Architecture{"lfm2", build_lfm2, {"Lfm2"}},
    Architecture{"lfm2_moe", build_lfm2_moe, {"Lfm2Moe"}},
    Architecture{"llama", build_llama, {"Llama", "model.", kAllClasses}},
    Architecture{"llama4", build_llama4, {"Llama4", "", kConditionalClass}, kPatched | kOfSeveral},
    Architecture{"llama4_text", build_llama4_text, {"Llama4"}, kPatched},
    Architecture{"llava", build_llava, {"Llava", "", kConditionalClass}, kPatched | kOfSeveral},
    Architecture{"llava_next",
                 build_llava_next,
                 {"LlavaNext", "", kConditionalClass},
                 kPatched | kOfSeveral},
    Architecture{"m2m_100", build_m2m_100, {"M2M100", "", kConditionalClass}},
    Architecture{"mamba", build_mamba, {"Mamba", "backbone."}},
    Architecture{"mamba2", build_mamba2, {"Mamba2", "backbone."}},
    Architecture{"mbart", build_mbart, {"MBart", "", kConditionalClass}},
    Architecture{"megatron_gpt", build_megatron_gpt, {"MegatronGpt"}},
    Architecture{"minimax_m2", build_minimax_m2, {"MiniMaxM2"}},
    Architecture{"ministral", build_ministral, {"Ministral", "model.", kAllClasses}},
    Architecture{"ministral3", build_ministral3, {"Ministral3", "model.", kAllClasses}},
    Architecture{"mistral", build_mistral, {"Mistral", "model.", kAllClasses}},
    Architecture{"mistral3", build_mistral3, {"Mistral3", "", kConditionalClass}, kOfSeveral},
    Architecture{"mixtral", build_mixtral, {"Mixtral", "model.", kAllClasses}},
    Architecture{"mllama", build_mllama, {"Mllama", "", kConditionalClass}, kPatched | kOfSeveral},
    Architecture{"mllama_text_model", build_mllama_text, {"Mllama", "", kCausalClass}, kPatched},
    Architecture{"modernbert", build_modernbert, {"ModernBert", "model.", kEncoderClasses}},
    Architecture{"mpt", build_mpt, {"Mpt", "transformer.", kScoringClasses}},
    Architecture{"mt5", build_mt5, {"MT5", "", kConditionalClass}},
    Architecture{"nemotron", build_nemotron, {"Nemotron", "model.", kAllClasses}, kPatched},
    Architecture{"nemotron_h", build_nemotron_h, {"NemotronH"}},
    Architecture{"olmo", build_olmo, {"Olmo", "model.", kScoringClasses}},
    Architecture{"olmo2", build_olmo2, {"Olmo2", "model.", kScoringClasses}},
    Architecture{"olmo3", build_olmo3, {"Olmo3", "model.", kScoringClasses}},
    Architecture{"olmoe", build_olmoe, {"Olmoe"}},
    Architecture{"opt", build_opt, {"OPT", "model.", kScoringClasses}},
    Architecture{
        "paligemma", build_paligemma, {"PaliGemma", "", kConditionalClass}, kPatched | kOfSeveral},
    Architecture{"pegasus", build_pegasus, {"Pegasus", "", kConditionalClass}},
    Architecture{"phi", build_phi, {"Phi", "model.", kAllClasses}},
    Architecture{"phi3", build_phi3, {"Phi3", "model.", kAllClasses}},
    Architecture{"phimoe", build_phimoe, {"Phimoe", "model.", kScoringClasses}},
    Architecture{"qwen2", build_qwen2, {"Qwen2", "model.", kAllClasses}},
    Architecture{"qwen2_5_vl",
                 build_qwen2_5_vl,
                 {"Qwen2_5_VL", "", kConditionalClass},
                 kPatched | kOfSeveral},
    Architecture{
        "qwen2_5_vl_text", build_qwen2_vl_text, {"Qwen2_5_VLText", "model.", kBaseClass}, kPatched},
    Architecture{"qwen2_audio",
                 build_qwen2_audio,
                 {"Qwen2Audio", "", kConditionalClass},
                 kPatched | kOfSeveral},
    Architecture{"qwen2_moe", build_qwen2_moe, {"Qwen2Moe", "model.", kAllClasses}},
    Architecture{
        "qwen2_vl", build_qwen2_vl, {"Qwen2VL", "", kConditionalClass}, kPatched | kOfSeveral},
    Architecture{
        "qwen2_vl_text", build_qwen2_vl_text, {"Qwen2VLText", "model.", kBaseClass}, kPatched},
    Architecture{"qwen3", build_qwen3, {"Qwen3", "model.", kAllClasses}},
    Architecture{
        "qwen3_5", build_qwen3_5, {"Qwen3_5", "", kConditionalClass}, kPatched | kOfSeveral},
    Architecture{"qwen3_5_moe",
                 build_qwen3_5_moe,
                 {"Qwen3_5Moe", "", kConditionalClass},
                 kPatched | kOfSeveral},
    Architecture{"qwen3_5_moe_text", build_qwen3_5_moe_text, {"Qwen3_5Moe"}, kPatched},
    Architecture{"qwen3_5_text", build_qwen3_5_text, {"Qwen3_5"}, kPatched},
    Architecture{"qwen3_moe", build_qwen3_moe, {"Qwen3Moe", "model.", kAllClasses}},
    Architecture{"qwen3_next", build_qwen3_next, {"Qwen3Next", "model.", kAllClasses}, kPatched},
    Architecture{
        "qwen3_vl", build_qwen3_vl, {"Qwen3VL", "", kConditionalClass}, kPatched | kOfSeveral},
    Architecture{"qwen3_vl_moe",
                 build_qwen3_vl_moe,
                 {"Qwen3VLMoe", "", kConditionalClass},
                 kPatched | kOfSeveral},
    Architecture{"qwen3_vl_moe_text",
                 build_qwen3_vl_moe_text,
                 {"Qwen3VLMoeText", "model.", kBaseClass},
                 kPatched},
    Architecture{
        "qwen3_vl_text", build_qwen3_vl_text, {"Qwen3VLText", "model.", kBaseClass}, kPatched},
    Architecture{"roberta", build_roberta, {"Roberta", "", kReadByBuilder}},
    Architecture{"seed_oss", build_seed_oss, {"SeedOss", "model.", kAllClasses}},
    Architecture{"siglip", build_siglip, {"Siglip", "", kPairClass}, kPatched | kOfSeveral},
    Architecture{
        "smolvlm", build_smolvlm, {"SmolVLM", "", kConditionalClass}, kPatched | kOfSeveral},
    Architecture{"smollm3", build_smollm3, {"SmolLM3", "model.", kAllClasses}},
    Architecture{"stablelm", build_stablelm, {"StableLm", "model.", kAllClasses}},
    Architecture{"starcoder2", build_starcoder2, {"Starcoder2", "model.", kAllClasses}},
    Architecture{"t5", build_t5, {"T5", "", kConditionalClass}},
    Architecture{"vit", build_vit, {"ViT", "", kReadByBuilder}},
    Architecture{"wav2vec2", build_wav2vec2, {"Wav2Vec2", "wav2vec2.", kSpeechClasses}},
    Architecture{"whisper", build_whisper, {"Whisper", "", kConditionalClass}},
    Architecture{"xlm-roberta", build_xlm_roberta, {"XLMRoberta", "", kReadByBuilder}},
};

/// Objects inside a configuration that describe networks beside the text model.
std::vector<std::string_view> inner_networks(const ModelConfig& config) {
  std::vector<std::string_view> found;
  for (const std::string_view name :
       {"text_config", "llm_config", "language_config", "thinker_config", "talker_config",
        "vision_config", "visual", "audio_config", "audio_encoder_config", "speech_config",
        "qformer_config", "perceiver_config", "encoder", "decoder"})
    if (config.entries(name) > 0) found.push_back(name);
  return found;
}

/// A type whose class reads such keys, where a decoder's attention and feed-forward tell one.
std::string_view built_alike(const ModelConfig& config) {
  const auto has = [&](std::string_view key) {
    return !config.is_list(key) && !config.is_text(key) && config.optional_count({key}).has_value();
  };
  for (const std::string& layer : config.texts("layer_types"))
    if (layer != "full_attention" && layer != "sliding_attention") return "";
  if (has("mamba_d_state") || has("ssm_state_size") || has("state_size")) return "";
  if (has("kv_lora_rank")) return "deepseek_v3";
  if (!has("num_key_value_heads") || !has("hidden_size")) return "";
  const bool sparse = has("num_experts") || has("num_local_experts") || has("n_routed_experts");
  return sparse ? "qwen3_moe" : "llama";
}

[[noreturn]] void refuse_type(const ModelConfig& config, const std::string& type) {
  const std::vector<std::string> known = supported_model_types();
  const std::vector<std::string_view> inner = inner_networks(config);
  std::string message = type.empty() ? "missing" : fmt::format("unsupported model_type '{}'", type);
  if (!inner.empty())
    message += fmt::format(": a network of several ({}), which cannot be counted whole",
                           fmt::join(inner, ", "));
  const std::string_view alike = inner.empty() ? built_alike(config) : "";
  const std::string types =
      alike.empty()
          ? fmt::format(
                "one of the {} types that docs/reference/models.md lists, such as llama, "
                "gpt2 or bert; or the network's tensors: {{\"tensors\": [[name, "
                "[dims]], ...]}}",
                known.size())
          : fmt::format(
                "one of the {} types that docs/reference/models.md lists, of which {} has "
                "such keys; or the network's tensors: {{\"tensors\": [[name, [dims]], "
                "...]}}",
                known.size(), alike);
  throw InputError({.file = config.file(),
                    .key = "model_type",
                    .message = message,
                    .expected = types,
                    .nearest = nearest(type, std::span<const std::string>(known))});
}

/// A text model's class has no tower: a configuration with one is some other program's.
void check_text_only(const ModelConfig& config, const std::string& type) {
  for (const std::string_view name : inner_networks(config))
    config.fail(name,
                fmt::format("model_type '{}' has no such network in transformers: it would "
                            "not be counted",
                            type),
                "a configuration of the text model alone");
}

void drop_prefix(std::string& name, std::string_view prefix) {
  if (name.starts_with(prefix)) name.erase(0, prefix.size());
}

}  // namespace

void check_layer_counts(const ModelConfig& config) {
  constexpr std::int64_t kMostLayers = 10'000;
  for (const std::string_view key : {"num_hidden_layers", "n_layer", "n_layers", "num_layers",
                                     "num_decoder_layers", "encoder_layers", "decoder_layers"})
    if (config.optional_count({key}).value_or(0) > kMostLayers)
      config.fail(key, fmt::format("found {}", *config.optional_count({key})),
                  fmt::format("at most {} layers", kMostLayers));
}

std::vector<std::string> supported_model_types() {
  std::vector<std::string> names;
  for (const Architecture& a : kArchitectures) names.emplace_back(a.model_type);
  std::sort(names.begin(), names.end());
  return names;
}

bool reads_images(std::string_view model_type) {
  return std::any_of(kArchitectures.begin(), kArchitectures.end(), [&](const Architecture& a) {
    return a.model_type == model_type && a.has(kOfSeveral);
  });
}

namespace {

/// What peft adapts of experts; engines with adapters of their own have their own rules.
void take_adapters(const ModelConfig& config, std::string_view type, BuildOptions& options) {
  if (!options.lora || options.inside || options.adapts_linears_alone || options.joins_adapters)
    return;
  Lora& lora = *options.lora;
  ExpertTargets& experts = options.expert_targets;
  experts = take_expert_targets(type, lora);
  const auto refuse = [&](const char* key, std::string message, std::string expected) {
    throw InputError({.file = config.file(),
                      .key = key,
                      .message = std::move(message),
                      .expected = std::move(expected)});
  };
  if (!experts.alone.empty())
    refuse("workload.lora.targets",
           fmt::format("peft refuses {} without {}, which experts of '{}' have in one weight",
                       experts.alone, experts.missing, type),
           "both, or neither");
  if (targets_mamba_output(type, lora))
    refuse("workload.lora.targets",
           fmt::format("peft refuses out_proj of '{}', which all-linear has too: its kernels take "
                       "the weight itself",
                       type),
           "names of other linear layers, such as in_proj");
}

}  // namespace

Model build_model(const ModelConfig& config, const BuildOptions& options) {
  const std::string type = config.text("model_type", "");
  const auto* found = std::find_if(kArchitectures.begin(), kArchitectures.end(),
                                   [&](const Architecture& a) { return a.model_type == type; });
  if (found == kArchitectures.end()) refuse_type(config, type);
  if (!found->has(kOfSeveral)) check_text_only(config, type);
  check_layer_counts(config);
  if (found->has(kPatched) && options.requested.any())
    throw InputError({.file = config.file(),
                      .key = "kernels",
                      .message = fmt::format("Liger's kernels in a network of model_type '{}' "
                                             "cannot be estimated yet",
                                             type),
                      .expected = "torch"});
  BuildOptions known = options;
  take_adapters(config, type, known);
  known.fused = kernels_of(type, options.requested);
  if (!known.inside && (found->classes.known & kReadByBuilder) == 0)
    known.head = read_head(config, found->classes);
  if (known.cached && known.head.kind != HeadKind::language_model)
    config.fail("architectures", "a class without a language model's head generates nothing",
                "a ...ForCausalLM");
  Model model = found->build(config, known);
  if (known.head.kind == HeadKind::none && !known.scalar_head) {
    for (Parameter& p : model.parameters) drop_prefix(p.name, found->classes.base);
    for (Module& m : model.modules) drop_prefix(m.name, found->classes.base);
    model.facts.assumed.push_back("loss: the mean of the last hidden states, the class has none");
  }
  const bool predicts = std::any_of(model.segments.begin(), model.segments.end(),
                                    [](const Segment& s) { return s.behind; });
  if (known.further_tokens > 0 && !predicts)
    throw InputError({.file = config.file(),
                      .key = "framework.mtp_num_layers",
                      .message = fmt::format("layers of multi-token prediction of a network of "
                                             "model_type '{}' are not described",
                                             type),
                      .expected = "0, or a decoder such as deepseek_v3"});
  model.facts.model_type = type;
  model.facts.grouped_experts = config.has("n_group");
  if (model.facts.longest_sequence == 0)
    model.facts.longest_sequence = stretched_positions(config, model.facts.max_positions);
  if (model.facts.text_type.empty()) model.facts.text_type = type;
  return model;
}

}  // namespace shardplan
