// Products in 8 bits under Megatron-LM: Transformer Engine's recipes, weights cast once a step.
#include <gtest/gtest.h>

#include "frameworks/registry.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"
#include "simulator/memory.h"
#include "small_llama.h"
#include "support/plan_testing.h"

namespace shardplan::megatron_fp8_test {
namespace {

using namespace small_llama;

constexpr std::int64_t kWords = 1024, kTokens = 4 * 512;

Plan with(LinearRecipe recipe, std::int64_t tensor = 1) {
  Plan plan = plan_of(FrameworkKind::megatron, "bf16-master", tensor);
  plan.workload.micro_batch = 4;
  plan.workload.sequence_length = 512;
  plan.parallel.tensor = tensor;
  plan.parallel.sequence_parallel = tensor > 1;
  plan.precision.linear = recipe;
  return plan;
}

std::int64_t workspace(const Plan& plan) {
  return resident(estimate(llama(plan, kWords), plan, Calibration{}), Category::workspace);
}

/// What lives when the forward pass ends.
std::int64_t kept(const Plan& plan) {
  const Model model = llama(plan, kWords);
  const RankModel rank(model, plan);
  return simulate_memory(lower(rank.model(), plan, rank.run(), 0)).of(Phase::forward).end;
}

TEST(MegatronFp8, KeepsWeightsInBothLayoutsForGood) {
  const std::int64_t plain = workspace(with(LinearRecipe::computed));
  const auto more = [&](LinearRecipe recipe, std::int64_t tensor) {
    return workspace(with(recipe, tensor)) - plain;
  };
  EXPECT_EQ(more(LinearRecipe::fp8_delayed, 1), 2 * kLayers * kWeights);
  EXPECT_EQ(more(LinearRecipe::fp8_current, 1), 2 * kLayers * kWeights);
  // Four bytes of scales for 128 elements.
  EXPECT_EQ(more(LinearRecipe::fp8_blockwise, 1), 2 * kLayers * (kWeights + kWeights / 32));
}

/// What linears read is kept in 8 bits in place of 16, qkv's and fc1's input once. What attention
/// returns it keeps itself in 16 bits, beside the 8 for the linear.
std::int64_t less(std::int64_t tensor) {
  const std::int64_t weights = 2 * kLayers * kWeights / tensor;
  return kept(with(LinearRecipe::computed, tensor)) + weights -
         kept(with(LinearRecipe::fp8_delayed, tensor));
}

TEST(MegatronFp8, CastsTheInputOfJointLinearsOnce) {
  EXPECT_EQ(less(1), kLayers * kTokens * (kHidden - kHidden + kHidden + kFfn));
}

/// Ranks keep their own tokens' inputs of column cuts, and gather the others' again.
TEST(MegatronFp8, KeepsARanksOwnTokens) {
  EXPECT_EQ(less(2), kLayers * kTokens * (kHidden - kHidden + kHidden + kFfn) / 2);
}

/// Transformer Engine's grouped linears keep their weights in both layouts too; what they read is
/// estimated as in 16 bits.
TEST(MegatronFp8, KeepsWeightsOfExpertsBesideInputsInSixteenBits) {
  const auto sparse = [](LinearRecipe recipe) {
    const Plan plan = with(recipe);
    return std::pair{plan, model_of(Json{{"model_type", "qwen3_moe"},
                                         {"hidden_size", 512},
                                         {"num_hidden_layers", 2},
                                         {"num_attention_heads", 8},
                                         {"num_key_value_heads", 8},
                                         {"head_dim", 64},
                                         {"vocab_size", 1024},
                                         {"num_experts", 4},
                                         {"num_experts_per_tok", 2},
                                         {"moe_intermediate_size", 256}}
                                        .dump(),
                                    build_options(plan))};
  };
  const auto [plain, model] = sparse(LinearRecipe::computed);
  const auto [narrow, same] = sparse(LinearRecipe::fp8_delayed);
  const Estimate before = estimate(model, plain, Calibration{});
  const Estimate after = estimate(same, narrow, Calibration{});
  // Of both layers; the router's rows are counted with the linears.
  const std::int64_t weights = 2 * (4 * 512 * 512 + 4 * 512 + 4 * 3 * 512 * 256);
  EXPECT_EQ(resident(after, Category::workspace) - resident(before, Category::workspace),
            2 * weights);
  EXPECT_EQ(before.most_over, 1);
  EXPECT_GT(after.most_over, 1);
}

TEST(MegatronFp8, IsTransformerEngines) {
  const auto refused = [](LinearRecipe recipe, bool engine) {
    Plan plan = with(recipe);
    plan.framework.megatron.transformer_engine = engine;
    return traits_of(plan).plan_problem(plan).has_value();
  };
  EXPECT_FALSE(refused(LinearRecipe::fp8_blockwise, true));
  EXPECT_TRUE(refused(LinearRecipe::fp8_blockwise, false));
  EXPECT_TRUE(refused(LinearRecipe::fp8_tensorwise, true));
  EXPECT_TRUE(refused(LinearRecipe::mxfp8, true));
}

}  // namespace
}  // namespace shardplan::megatron_fp8_test
