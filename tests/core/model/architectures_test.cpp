// What the dense decoder families refuse, and what they do whatever is asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "build_testing.h"

namespace shardplan {
namespace {

TEST(DecoderFamilies, RefuseHeadsThatDoNotDivideTheHiddenSize) {
  EXPECT_EQ(refused_key(R"({"model_type": "qwen2", "hidden_size": 100, "num_attention_heads": 3,
                            "num_key_value_heads": 3})"),
            "hidden_size");
  EXPECT_EQ(refused_key(R"({"model_type": "opt", "hidden_size": 100, "num_attention_heads": 3})"),
            "hidden_size");
  EXPECT_EQ(refused_key(R"({"model_type": "gptj", "n_embd": 100, "n_head": 3})"), "n_embd");
  EXPECT_EQ(refused_key(R"({"model_type": "stablelm", "hidden_size": 100, "head_dim": 32,
                            "num_attention_heads": 3, "num_key_value_heads": 3})"),
            "hidden_size");
}

TEST(DecoderFamilies, RefuseKeyValueHeadsThatDoNotDivideTheHeads) {
  EXPECT_EQ(refused_key(R"({"model_type": "mistral", "num_key_value_heads": 5})"),
            "num_attention_heads");
  EXPECT_EQ(refused_key(R"({"model_type": "falcon", "new_decoder_architecture": true,
                            "num_kv_heads": 8})"),
            "num_attention_heads");
}

TEST(DecoderFamilies, RefuseALayoutThatTheClassCannotRun) {
  EXPECT_EQ(refused_key(R"({"model_type": "falcon", "new_decoder_architecture": true,
                            "parallel_attn": false})"),
            "parallel_attn");
  EXPECT_EQ(refused_key(R"({"model_type": "falcon", "num_ln_in_parallel_attn": 2})"),
            "num_ln_in_parallel_attn");
  EXPECT_EQ(refused_key(R"({"model_type": "gptj", "rotary_dim": 512})"), "rotary_dim");
  EXPECT_EQ(refused_key(R"({"model_type": "phi", "partial_rotary_factor": 1.5})"),
            "partial_rotary_factor");
  EXPECT_EQ(refused_key(R"({"model_type": "phi", "hidden_act": "gleu"})"), "hidden_act");
  EXPECT_EQ(refused_key(R"({"model_type": "gemma2", "num_hidden_layers": 2,
                            "layer_types": ["full_attention"]})"),
            "layer_types");
}

TEST(DecoderFamilies, TakeTheirClassDefaultsForAnEmptyFile) {
  EXPECT_EQ(build(R"({"model_type": "mistral"})").facts.key_value_heads, 8);
  EXPECT_EQ(
      build(R"({"model_type": "mistral", "num_key_value_heads": null})").facts.key_value_heads, 32);
  EXPECT_EQ(build(R"({"model_type": "starcoder2"})").facts.key_value_heads, 2);
  EXPECT_EQ(build(R"({"model_type": "falcon"})").facts.key_value_heads, 1);
}

/// gpt_neo, gptj, bloom and mpt have no fused attention.
TEST(DecoderFamilies, WithoutFusedAttentionRunTheEagerOneAlways) {
  for (const char* type : {"gpt_neo", "gptj", "bloom", "mpt"}) {
    const std::string config = std::string(R"({"model_type": ")") + type + "\"}";
    const Model model = build(config.c_str(), AttentionKind::sdpa);
    EXPECT_FALSE(model.facts.supports_sdpa) << type;
    bool fused = false, softmax = false;
    for (const Op& op : model.segments[1].graph.ops()) {
      fused = fused || op.kind == OpKind::sdpa;
      softmax = softmax || op.kind == OpKind::softmax || op.kind == OpKind::softmax_f32;
    }
    EXPECT_FALSE(fused) << type;
    EXPECT_TRUE(softmax) << type;
  }
}

/// Their classes register what other families make in each step.
TEST(DecoderFamilies, HoldMasksAndSinusoidsOfAllPositions) {
  const auto buffers = [](const char* type) {
    return build(fmt::format(R"({{"model_type": "{}"}})", type).c_str()).facts.buffer_bytes;
  };
  EXPECT_EQ(buffers("gpt_neo"), 24 * 2048 * 2048);
  EXPECT_EQ(buffers("gptj"), 28 * 2048 * 64 * 4);
  EXPECT_EQ(buffers("gpt2"), 0);
}

TEST(DecoderFamilies, SplitTheirLayersWhereSlidingAndFullAttentionAlternate) {
  const Model model = build(R"({"model_type": "gemma3_text", "num_hidden_layers": 13})");
  std::vector<std::int64_t> repeats;
  for (const Segment& s : model.segments)
    if (s.checkpointable) repeats.push_back(s.repeat);
  EXPECT_THAT(repeats, testing::ElementsAre(5, 1, 5, 1, 1));
  EXPECT_EQ(model.groups.size(), 7U);  // the embedding, five runs, the final norm
}

}  // namespace
}  // namespace shardplan
