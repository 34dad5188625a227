// The mixture-of-experts, encoder and encoder-decoder families: what they refuse, how their layers
// divide into segments, and that every tensor of a step is let go of once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "build_testing.h"
#include "load/catalog.h"
#include "program/tape.h"

namespace shardplan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::int64_t> block_repeats(const Model& model) {
  std::vector<std::int64_t> repeats;
  for (const Segment& s : model.segments)
    if (s.checkpointable) repeats.push_back(s.repeat);
  return repeats;
}

TEST(SparseFamilies, RefuseValuesThatContradictEachOther) {
  EXPECT_EQ(refused_key(R"({"model_type": "mixtral", "num_experts_per_tok": 9})"),
            "num_experts_per_tok");
  EXPECT_EQ(refused_key(R"({"model_type": "mixtral", "num_key_value_heads": 5})"),
            "num_attention_heads");
  EXPECT_EQ(refused_key(R"({"model_type": "qwen3_moe", "num_experts_per_tok": 129})"),
            "num_experts_per_tok");
  EXPECT_EQ(refused_key(R"({"model_type": "qwen2_moe", "decoder_sparse_step": 0})"),
            "decoder_sparse_step");
  EXPECT_EQ(refused_key(R"({"model_type": "deepseek_v2"})"), "num_experts_per_tok");
  EXPECT_EQ(refused_key(R"({"model_type": "gpt_oss", "num_local_experts": 3})"),
            "num_experts_per_tok");
  EXPECT_EQ(refused_key(R"({"model_type": "bert", "hidden_size": 100})"), "hidden_size");
  EXPECT_EQ(refused_key(R"({"model_type": "bert", "architectures": ["BertForDreams"]})"),
            "architectures");
  EXPECT_EQ(refused_key(R"({"model_type": "roberta", "architectures": ["BertForMaskedLM"]})"),
            "architectures");
  EXPECT_EQ(refused_key(R"({"model_type": "vit", "image_size": [224]})"), "image_size");
  EXPECT_EQ(refused_key(R"({"model_type": "bart", "decoder_attention_heads": 7})"), "d_model");
  EXPECT_EQ(refused_key(R"({"model_type": "t5", "feed_forward_proj": "gated-sine"})"),
            "feed_forward_proj");
}

TEST(SparseFamilies, LayersOfOneKindInARowAreOneSegment) {
  const std::string qwen = R"({"model_type": "qwen3_moe", "num_hidden_layers": 6, )";
  EXPECT_THAT(block_repeats(build(qwen + R"("decoder_sparse_step": 1})")), ElementsAre(6));
  EXPECT_THAT(block_repeats(build(qwen + R"("decoder_sparse_step": 3})")), ElementsAre(2, 1, 2, 1));
  EXPECT_THAT(block_repeats(build(qwen + R"("mlp_only_layers": [0, 5]})")), ElementsAre(1, 4, 1));
  EXPECT_THAT(block_repeats(build(qwen + R"("num_experts": 0})")), ElementsAre(6));
  EXPECT_THAT(block_repeats(build(R"({"model_type": "deepseek_v3"})")), ElementsAre(3, 58));
}

TEST(SparseFamilies, RunsOfLayersKeepTheirExpertsApart) {
  const Model model =
      build(R"({"model_type": "qwen3_moe", "num_hidden_layers": 4, "decoder_sparse_step": 2})");
  std::set<ModuleId> modules;
  for (const Segment& s : model.segments)
    for (const Op& op : s.graph.ops())
      if (op.kind == OpKind::grouped_linear) modules.insert(op.module);
  EXPECT_EQ(modules.size(), 2U);
  for (const ModuleId m : modules)
    EXPECT_EQ(model.modules[static_cast<std::size_t>(m)].parameters.size(), 2U);
}

TEST(SparseFamilies, AnAbsentQueryRankIsTheDefaultAndNullMeansNone) {
  const std::string v3 = R"({"model_type": "deepseek_v3")";
  const auto has = [](const Model& m, const std::string& part) {
    for (const Parameter& p : m.parameters)
      if (p.name.find(part) != std::string::npos) return true;
    return false;
  };
  EXPECT_TRUE(has(build(v3 + "}"), "q_a_proj"));
  EXPECT_FALSE(has(build(v3 + R"(, "q_lora_rank": null})"), "q_a_proj"));
  EXPECT_TRUE(has(build(v3 + R"(, "q_lora_rank": null})"), "self_attn.q_proj"));
}

TEST(SparseFamilies, T5TiesItsHeadWhateverTheFileSays) {
  const Model model = build(R"({"model_type": "t5", "tie_word_embeddings": false})");
  EXPECT_EQ(model.parameter_count(), 60506624);
  EXPECT_THAT(model.facts.assumed, ElementsAre(HasSubstr("tied head")));
}

TEST(SparseFamilies, WhisperNeverTrainsItsEncoderPositions) {
  const Model model = build(R"({"model_type": "whisper"})");
  EXPECT_EQ(model.parameter_count() - model.trainable_count(), 1500 * 384);
}

TEST(SparseFamilies, GptOssAlwaysRunsEagerAttention) {
  const Model model = build(R"({"model_type": "gpt_oss"})");
  EXPECT_FALSE(model.facts.supports_sdpa);
  for (const Op& op : model.segments[1].graph.ops()) EXPECT_NE(op.kind, OpKind::sdpa);
}

/// Follows the storages of one run; returns how many are left.
std::size_t left_over(const TapeRun& run, const std::string& where) {
  std::map<std::int32_t, std::int64_t> alive;
  for (const auto* events : {&run.forward, &run.backward}) {
    for (const TapeEvent& e : *events) {
      if (e.id < 0) continue;  // the neighbours' tensors
      if (e.kind == TapeEvent::Kind::alloc && e.category != Category::other) {
        EXPECT_TRUE(alive.emplace(e.id, e.bytes).second) << where;
      } else if (e.kind == TapeEvent::Kind::free && e.category != Category::other) {
        EXPECT_EQ(alive.erase(e.id), 1U) << where;
      }
    }
  }
  return alive.size();
}

TEST(SparseFamilies, EveryTensorOfAStepIsLetGoOfOnce) {
  const std::set<std::string> families{"bart",  "bert",    "deberta", "deepseek",   "electra",
                                       "ernie", "gpt_oss", "mistral", "modernbert", "nemotron",
                                       "qwen",  "t5",      "vit",     "whisper"};
  std::set<std::string> seen;
  const Sizes sizes{.batch = 2, .sequence = 48, .target = 24};
  for (const CatalogModel& entry : catalog_models()) {
    const auto type = entry.config.at("model_type").get<std::string>();
    if (!families.contains(entry.family)) continue;
    if (!seen.insert(type).second) continue;
    const bool headless =
        entry.config.contains("architectures") &&
        entry.config.at("architectures").at(0).get<std::string>().ends_with("Model");
    for (const AttentionKind attention : {AttentionKind::sdpa, AttentionKind::eager}) {
      const Model model = build(entry.config.dump(), attention);
      for (const Regime& regime :
           {Regime{DType::bf16, DType::bf16}, Regime{DType::f32, DType::bf16}}) {
        DType input = regime.params;
        for (const Segment& segment : model.segments) {
          const std::string where = entry.name + ", " + segment.name;
          const TapeRun kept = run_tape(model, segment, regime, sizes, input, TapeMode::keep);
          // The output, until the next segment is done with it, and the gradient of the input.
          EXPECT_LE(left_over(kept, where), 2U) << where;
          const TapeRun redone = run_tape(model, segment, regime, sizes, input, TapeMode::redo);
          EXPECT_LE(left_over(redone, where), 1U) << where;
          EXPECT_EQ(kept.model_flops > 0 || segment.name.ends_with("embedding") ||
                        segment.name.ends_with("norm") || segment.name.ends_with("bias") ||
                        segment.name.starts_with("images") || (headless && segment.name == "head"),
                    true)
              << where;
          input = kept.output_dtype;
        }
      }
    }
  }
  EXPECT_GE(seen.size(), 12U);
}

/// Two products of 2·h·f and one of h·f for each chosen expert, one of h·E for the router.
TEST(SparseFamilies, OnlyChosenExpertsCount) {
  const auto flops = [](int top_k) {
    const Model model =
        build(R"({"model_type": "mixtral", "num_experts_per_tok": )" + std::to_string(top_k) + "}");
    const Sizes sizes{.batch = 1, .sequence = 1};
    double sum = 0;
    for (const Kernel& k : run_tape(model, model.segments[1], {DType::bf16, DType::bf16}, sizes,
                                    DType::bf16, TapeMode::keep)
                               .forward_kernels)
      sum += flops_of(k);
    return sum;
  };
  EXPECT_DOUBLE_EQ(flops(4) - flops(2), 2.0 * 2 * 3 * 4096 * 14336);
}

}  // namespace
}  // namespace shardplan
