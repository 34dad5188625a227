// What "architectures" decides, and what is refused rather than counted in part.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "build_testing.h"

namespace shardplan::classes_test {
namespace {

std::string message_of(const std::string& config) {
  try {
    build(config);
  } catch (const InputError& e) {
    return e.diagnostic().message;
  }
  return "accepted";
}

std::string expected_of(const std::string& config) {
  try {
    build(config);
  } catch (const InputError& e) {
    return e.diagnostic().expected;
  }
  return "accepted";
}

TEST(Classes, OfAnUnknownTypeTheKeysTellWhichIsBuiltAlike) {
  const std::string keys = R"({"model_type": "of_next_year", "hidden_size": 64,
                               "num_key_value_heads": 2)";
  EXPECT_THAT(expected_of(keys + "}"), testing::HasSubstr("of which llama has such keys"));
  EXPECT_THAT(expected_of(keys + R"(, "num_experts": 8})"),
              testing::HasSubstr("of which qwen3_moe has such keys"));
  EXPECT_THAT(expected_of(keys + R"(, "kv_lora_rank": 16})"),
              testing::HasSubstr("of which deepseek_v3 has such keys"));
  // Layers with a state are none of them.
  EXPECT_THAT(expected_of(keys + R"(, "layer_types": ["linear_attention", "full_attention"]})"),
              testing::HasSubstr("such as llama, gpt2 or bert"));
}

TEST(Classes, DecideWhatTheNetworkEndsIn) {
  const auto count = [](const std::string& name) {
    return build(R"({"model_type": "mistral", "num_labels": 3, "architectures": [")" + name +
                 "\"]}")
        .parameter_count();
  };
  const std::int64_t base = count("MistralModel");
  EXPECT_EQ(count("MistralForCausalLM"), base + 32000 * 4096);
  EXPECT_EQ(count("MistralForSequenceClassification"), base + 3 * 4096);
  EXPECT_EQ(count("MistralForTokenClassification"), base + 3 * 4096 + 3);
}

/// transformers' models/auto has no class with a head for them.
TEST(Classes, GiveTextPartsNoHeadAlone) {
  for (const char* type : {"qwen2_vl_text", "qwen2_5_vl_text", "qwen3_vl_text"}) {
    const Model alone = build(fmt::format(R"({{"model_type": "{}"}})", type));
    EXPECT_TRUE(std::ranges::none_of(alone.parameters, [](const Parameter& p) {
      return p.name.find("lm_head") != std::string::npos || p.name.starts_with("model.");
    })) << type;
  }
  const Model whole = build(R"({"model_type": "qwen3_vl", "tie_word_embeddings": false})");
  EXPECT_TRUE(std::ranges::any_of(whole.parameters, [](const Parameter& p) {
    return p.name.find("lm_head") != std::string::npos;
  }));
}

TEST(Classes, TakeTheNumberOfLabelsFromTheirNames) {
  const Model model = build(R"({"model_type": "llama", "id2label": {"0": "LABEL_0"},
                                "architectures": ["LlamaForSequenceClassification"]})");
  EXPECT_EQ(model.parameters.back().shape, (std::vector<std::int64_t>{1, 4096}));
}

TEST(Classes, AreRefusedByNameWhereTheyAreNotKnown) {
  const std::string reward = R"({"model_type": "qwen2", "architectures": ["Qwen2ForRewardModel"]})";
  EXPECT_EQ(refused_key(reward), "architectures");
  EXPECT_THAT(message_of(reward), testing::HasSubstr("Qwen2ForRewardModel"));
  for (const char* name : {"LlamaForQuestionAnswering", "YiForCausalLM", "LlamaForCausalLMEagle3"})
    EXPECT_EQ(
        refused_key(std::string(R"({"model_type": "llama", "architectures": [")") + name + "\"]}"),
        "architectures")
        << name;
  EXPECT_EQ(refused_key(R"({"model_type": "t5", "architectures": ["T5EncoderModel"]})"),
            "architectures");
  EXPECT_EQ(refused_key(R"({"model_type": "gpt2", "architectures": ["GPT2DoubleHeadsModel"]})"),
            "architectures");
}

TEST(Classes, WithoutALanguageModelsHeadGenerateNothing) {
  const ModelConfig config = load_model_config(
      Json::parse(R"({"model_type": "llama", "architectures": ["LlamaModel"]})"), "config.json");
  EXPECT_THROW(build_model(config, {.cached = true}), InputError);
}

TEST(InnerNetworks, AreNeverLeftOutOfACount) {
  const std::string unknown = R"({"model_type": "other_vl", "vision_config": {"hidden_size": 1024},
                                  "text_config": {"model_type": "llama", "hidden_size": 4096}})";
  EXPECT_EQ(refused_key(unknown), "model_type");
  EXPECT_THAT(message_of(unknown), testing::HasSubstr("text_config, vision_config"));
  EXPECT_EQ(refused_key(R"({"model_type": "llama", "vision_config": {"hidden_size": 1024}})"),
            "vision_config");
}

/// Types of transformers 5.17 whose configurations have a text model inside: what is counted has
/// its tower, and the rest is refused.
TEST(InnerNetworks, OfEveryTypeAreCountedWholeOrRefused) {
  constexpr std::array kTypes{"aimv2",
                              "align",
                              "altclip",
                              "aria",
                              "audioflamingo3",
                              "aya_vision",
                              "blip",
                              "blip-2",
                              "bridgetower",
                              "chinese_clip",
                              "clap",
                              "clip",
                              "clipseg",
                              "clvp",
                              "cohere2_vision",
                              "deepseek_vl",
                              "deepseek_vl_hybrid",
                              "emu3",
                              "ernie4_5_vl_moe",
                              "exaone4_5",
                              "fast_vlm",
                              "flava",
                              "florence2",
                              "gemma3",
                              "gemma3n",
                              "gemma4",
                              "glm46v",
                              "glm4v",
                              "glm4v_moe",
                              "glm_ocr",
                              "got_ocr2",
                              "granite_speech",
                              "grounding-dino",
                              "groupvit",
                              "hunyuan_vl",
                              "idefics2",
                              "idefics3",
                              "instructblip",
                              "instructblipvideo",
                              "internvl",
                              "janus",
                              "kimi_k25",
                              "kosmos-2",
                              "kosmos-2.5",
                              "lfm2_vl",
                              "lighton_ocr",
                              "llama4",
                              "llava",
                              "llava_next",
                              "llava_next_video",
                              "llava_onevision",
                              "metaclip_2",
                              "minimax_m3_vl",
                              "mistral3",
                              "mllama",
                              "modernvbert",
                              "musicflamingo",
                              "ovis2",
                              "owlv2",
                              "owlvit",
                              "paddleocr_vl",
                              "paligemma",
                              "perception_lm",
                              "pix2struct",
                              "qwen2_5_omni_thinker",
                              "qwen2_5_vl",
                              "qwen2_audio",
                              "qwen2_vl",
                              "qwen3_5",
                              "qwen3_5_moe",
                              "qwen3_omni_moe_thinker",
                              "qwen3_vl",
                              "qwen3_vl_moe",
                              "shieldgemma2",
                              "siglip",
                              "siglip2",
                              "smolvlm",
                              "step3p7",
                              "vibevoice",
                              "video_llama_3",
                              "video_llava",
                              "vipllava",
                              "vision-text-dual-encoder",
                              "voxtral",
                              "xclip"};
  std::set<std::string> counted;
  for (const char* type : kTypes) {
    const Json inner{{"num_hidden_layers", 2}};
    const Json config{{"model_type", type},
                      {"text_config", inner},
                      {"vision_config", inner},
                      {"audio_config", inner}};
    try {
      const Model model =
          build_model(load_model_config(config, "config.json"), {.counts_only = true});
      const auto in_tower = [](const Parameter& p) {
        return p.name.find("vis") != std::string::npos || p.name.find("audio") != std::string::npos;
      };
      EXPECT_TRUE(std::any_of(model.parameters.begin(), model.parameters.end(), in_tower)) << type;
      EXPECT_FALSE(std::all_of(model.parameters.begin(), model.parameters.end(), in_tower)) << type;
      counted.insert(type);
    } catch (const InputError&) {
    }
  }
  for (const char* type : {"clip", "gemma3", "gemma3n", "gemma4", "idefics3", "internvl", "llama4",
                           "llava", "llava_next", "mistral3", "mllama", "paligemma", "qwen2_5_vl",
                           "qwen2_audio", "qwen2_vl", "qwen3_vl", "siglip", "smolvlm"})
    EXPECT_TRUE(counted.contains(type)) << type;
}

TEST(CountsOnly, HasTensorsAndNoSegments) {
  const std::string llama4 = R"({"model_type": "llama4", "vision_config": {"num_hidden_layers": 2},
                                 "text_config": {"num_hidden_layers": 4}})";
  const ModelConfig config = load_model_config(Json::parse(llama4), "config.json");
  const Model model = build_model(config, {.counts_only = true});
  EXPECT_TRUE(model.segments.empty());
  std::int64_t tower = 0;
  for (const Parameter& p : model.parameters) tower += p.name.starts_with("vision_model.");
  EXPECT_GT(tower, 0);
}

TEST(Gemma3n, RefusesOtherTowersOfTimmThanTheOneTheyKnow) {
  for (const char* tower : {R"({"architecture": "resnet50"})", R"({"model_args": {"depth": 3}})"}) {
    const ModelConfig config = load_model_config(
        Json::parse(std::string(R"({"model_type": "gemma3n", "text_config": {}, "audio_config": {},
                                    "vision_config": )") +
                    tower + "}"),
        "config.json");
    EXPECT_THROW(build_model(config, {.counts_only = true}), InputError) << tower;
  }
}

/// Layers that take keys and values over need one like themselves that has its own.
TEST(LayersThatTakeOver, AreRefusedWhereNobodyLends) {
  const std::string config = R"({"model_type": "gemma3n_text", "num_hidden_layers": 3,
      "num_kv_shared_layers": 1,
      "layer_types": ["sliding_attention", "sliding_attention", "full_attention"]})";
  EXPECT_EQ(refused_key(config), "num_kv_shared_layers");
  EXPECT_EQ(refused_key(R"({"model_type": "gemma3n_text", "num_hidden_layers": 3,
      "activation_sparsity_pattern": [0.5]})"),
            "activation_sparsity_pattern");
  EXPECT_EQ(refused_key(R"({"model_type": "gemma3n_text", "altup_num_inputs": 1})"),
            "altup_num_inputs");
}

TEST(CountedFamilies, RefuseATowerThatTheyCannotCount) {
  const ModelConfig config = load_model_config(
      Json::parse(R"({"model_type": "llava", "vision_config": {"model_type": "swin"},
                      "text_config": {"model_type": "llama"}})"),
      "config.json");
  EXPECT_THROW(build_model(config, {.counts_only = true}), InputError);
}

TEST(EncoderAndDecoder, RefuseMegatronsKernelsWhereTheyAreNotDescribed) {
  for (const char* type : {"t5", "mt5", "pegasus", "m2m_100"}) {
    const ModelConfig config =
        load_model_config(Json::parse(fmt::format(R"({{"model_type": "{}"}})", type)), "c");
    EXPECT_THROW(build_model(config, {.kernels = KernelSet::megatron}), InputError) << type;
  }
}

/// Delta nets alone are described as Megatron-LM runs them.
TEST(LayersWithAState, AreRefusedInGenerationAndShortConvolutionsUnderMegatron) {
  for (const char* type : {"lfm2", "qwen3_next", "qwen3_5_text"}) {
    const ModelConfig config =
        load_model_config(Json::parse(fmt::format(R"({{"model_type": "{}"}})", type)), "c");
    EXPECT_NO_THROW(build_model(config, {})) << type;
    EXPECT_THROW(build_model(config, {.cached = true}), InputError) << type;
    const BuildOptions megatron{.kernels = KernelSet::megatron};
    if (type == std::string_view("lfm2")) {
      EXPECT_THROW(build_model(config, megatron), InputError);
    } else {
      EXPECT_NO_THROW(build_model(config, megatron)) << type;
    }
  }
}

TEST(LigersKernels, AreRefusedForFamiliesWhereTheyAreNotModelled) {
  const ModelConfig config = load_model_config(Json::parse(R"({"model_type": "nemotron"})"), "c");
  EXPECT_THROW(build_model(config, {.requested = {.patches = true}}), InputError);
}

}  // namespace
}  // namespace shardplan::classes_test
