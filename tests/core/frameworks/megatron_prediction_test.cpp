// Layers that predict further tokens under Megatron-LM (--mtp-num-layers).
#include <gmock/gmock.h>

#include "frameworks/registry.h"
#include "lowering/lower.h"
#include "lowering/pipeline/stages.h"
#include "lowering/rank_model.h"
#include "simulator/memory.h"
#include "support/error_of.h"
#include "support/plan_testing.h"

namespace shardplan::megatron_prediction_test {
namespace {

constexpr std::int64_t kLayers = 4, kHidden = 512, kFfn = 1536, kKeys = 128, kWords = 4096;
constexpr std::int64_t kTokens = 2 * 256;
constexpr std::int64_t kLayer =
    2 * kHidden * kHidden + 2 * kHidden * kKeys + 3 * kHidden * kFfn + 2 * kHidden;
/// enorm, hnorm and final_layernorm, and eh_proj.
constexpr std::int64_t kAround = 3 * kHidden + 2 * kHidden * kHidden;

Plan with(std::int64_t further, std::int64_t stages = 1, std::int64_t tensor = 1) {
  Plan plan = plan_of(FrameworkKind::megatron, "bf16-master", stages * tensor);
  plan.workload.micro_batch = 2;
  plan.workload.sequence_length = 256;
  plan.workload.gradient_accumulation = stages;
  plan.parallel.pipeline = stages;
  plan.parallel.tensor = tensor;
  plan.parallel.sequence_parallel = tensor > 1;
  plan.framework.megatron.mtp_num_layers = further;
  return plan;
}

Model network(const char* type, const Plan& plan, std::int64_t words = kWords) {
  return model_of(Json{{"model_type", type},
                       {"hidden_size", kHidden},
                       {"intermediate_size", kFfn},
                       {"num_hidden_layers", kLayers},
                       {"num_attention_heads", 8},
                       {"num_key_value_heads", 2},
                       {"vocab_size", words},
                       {"tie_word_embeddings", false}}
                      .dump(),
                  build_options(plan));
}

MemoryProfile simulated(const Plan& plan, std::int64_t words = kWords) {
  const Model model = network("llama", plan, words);
  const RankModel rank(model, plan);
  return simulate_memory(lower(rank.model(), plan, rank.run(), 0));
}

TEST(TokenPrediction, HasALayerAndWhatJoinsItsInputs) {
  const std::int64_t plain = network("llama", with(0)).parameter_count();
  EXPECT_EQ(network("llama", with(1)).parameter_count(), plain + kLayer + kAround);
  EXPECT_EQ(network("llama", with(2)).parameter_count(), plain + 2 * (kLayer + kAround));
}

TEST(TokenPrediction, GoesWithTheHeadAndBringsTheEmbedding) {
  const Plan plan = with(1, 2);
  const Model model = network("llama", plan);
  EXPECT_THAT(blocks_of_chunks(model, plan.parallel), testing::ElementsAre(2, 2));
  const auto elements = [&](std::int64_t stage) {
    return parameters_of(model, stage_of(model, plan.parallel, stage)).parameter_count();
  };
  EXPECT_EQ(elements(0), kWords * kHidden + 2 * kLayer);
  EXPECT_EQ(elements(1), 2 * kWords * kHidden + 3 * kLayer + kAround + kHidden);
}

/// Each token has logits of its own, kept in fp32 for its loss; the table is there once.
TEST(TokenPrediction, KeepsLogitsOfEachToken) {
  const auto more = [](std::int64_t further, std::int64_t words) {
    const auto kept = [&](std::int64_t tokens) {
      return simulated(with(tokens), words).of(Phase::forward).end;
    };
    return kept(further) - kept(further - 1);
  };
  for (const std::int64_t further : {1, 2}) {
    const std::int64_t logits = more(further, 2 * kWords) - more(further, kWords);
    EXPECT_GE(logits, kTokens * kWords * 4) << further;
    EXPECT_LE(logits, kTokens * kWords * 6 + 4096) << further;
  }
}

TEST(TokenPrediction, RecomputesItsLayerWithTheOthers) {
  const auto kept = [](std::int64_t further, Checkpointing policy) {
    Plan plan = with(further);
    plan.checkpointing = policy;
    return simulated(plan).of(Phase::forward).end;
  };
  const auto more = [&](Checkpointing policy) { return kept(1, policy) - kept(0, policy); };
  EXPECT_GT(more(Checkpointing::none) - more(Checkpointing::full), kTokens * kFfn * 2 * 2);
}

TEST(TokenPrediction, DividesTensorsAsTheOtherLayersDo) {
  const Plan plan = with(1, 1, 2);
  const Model model = network("llama", plan);
  const RankModel rank(model, plan);
  const std::int64_t norms = 2 * kHidden * (kLayers + 1) + kHidden + 3 * kHidden;
  const std::int64_t whole = model.parameter_count() - norms - 2 * kHidden * kHidden;
  EXPECT_EQ(rank.model().parameter_count(), whole / 2 + norms + 2 * kHidden * kHidden);
}

TEST(TokenPrediction, IsRefusedWhereNoLayerIsDescribed) {
  EXPECT_THAT(error_text([] { network("gpt2", with(1)); }),
              testing::HasSubstr("framework.mtp_num_layers"));
}

}  // namespace
}  // namespace shardplan::megatron_prediction_test
