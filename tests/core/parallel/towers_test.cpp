// Networks that read images under Megatron-LM: a whole tower on the GPUs of the first stage, by
// transformers' code (mcore-bridge 1.6, model/mm_gpt_model.py, model/mm_gpts/utils.py).
#include <gmock/gmock.h>

#include "lowering/lower.h"
#include "lowering/pipeline/stages.h"
#include "lowering/rank_model.h"
#include "parallel/problem.h"
#include "parallel/shard.h"
#include "simulator/memory.h"
#include "support/error_of.h"
#include "support/plan_testing.h"
#include "support/program_testing.h"

namespace shardplan::towers_test {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kDepth = 6, kLayers = 8, kHidden = 256, kTokens = 64;

Plan plan_with(std::int64_t gpus, std::int64_t tensor, std::int64_t stages) {
  Plan plan = plan_of(FrameworkKind::megatron, "bf16-master", gpus);
  plan.workload.sequence_length = 512;
  plan.workload.gradient_accumulation = 4;
  plan.workload.images = {.per_sample = 1, .tokens = kTokens};
  plan.workload.images.frozen = FrozenParts::tower_and_projector;
  plan.parallel.tensor = tensor;
  plan.parallel.sequence_parallel = tensor > 1;
  plan.parallel.pipeline = stages;
  return plan;
}

/// Qwen 2-VL, or 3-VL with rows of the tower after each of the first three layers.
Model network(const Plan& plan, std::string_view type = "qwen2_vl") {
  const Json text{
      {"hidden_size", kHidden},   {"intermediate_size", 512}, {"num_hidden_layers", kLayers},
      {"num_attention_heads", 8}, {"num_key_value_heads", 4}, {"head_dim", 32},
      {"vocab_size", 1024}};
  const Json tower{{"embed_dim", 64},
                   {"hidden_size", type == "qwen2_vl" ? kHidden : 64},
                   {"intermediate_size", 128},
                   {"out_hidden_size", kHidden},
                   {"depth", kDepth},
                   {"num_heads", 4},
                   {"deepstack_visual_indexes", {1, 3, 5}}};
  return model_of(
      Json{{"model_type", type}, {"text_config", text}, {"vision_config", tower}}.dump(),
      build_options(plan));
}

std::int64_t elements(const Model& model, std::string_view part) {
  std::int64_t sum = 0;
  model.for_each_distinct([&](const Parameter& p, std::int64_t repeat) {
    if (p.name.find(part) != std::string::npos) sum += p.numel * repeat;
  });
  return sum;
}

constexpr std::string_view kTower = "model.visual", kText = "self_attn.q_proj";

TEST(Towers, AreWholeOnEveryGpuOfATensorParallelGroup) {
  const Plan plan = plan_with(4, 4, 1);
  const Model whole = network(plan);
  const Model part = shard(whole, plan);
  EXPECT_GT(elements(whole, kTower), 0);
  EXPECT_EQ(elements(part, kTower), elements(whole, kTower));
  EXPECT_EQ(elements(part, kText), elements(whole, kText) / 4);
}

TEST(Towers, AreOnTheFirstStageAndAreNoLayersOfIt) {
  const Plan plan = plan_with(4, 1, 4);
  const Model model = network(plan);
  EXPECT_EQ(blocks_of_chunks(model, plan.parallel), std::vector<std::int64_t>(4, kLayers / 4));
  const auto of_stage = [&](std::int64_t k) {
    return elements(parameters_of(model, stage_of(model, plan.parallel, k)), kTower);
  };
  EXPECT_EQ(of_stage(0), elements(model, kTower));
  EXPECT_EQ(of_stage(1), 0);
  EXPECT_EQ(of_stage(3), 0);
}

TEST(Towers, AreThereWhereTheDataHaveNoImages) {
  Plan plan = plan_with(2, 1, 2);
  plan.workload.images.per_sample = 0;
  const Model model = network(plan);
  EXPECT_EQ(elements(parameters_of(model, stage_of(model, plan.parallel, 0)), kTower),
            elements(model, kTower));
  EXPECT_EQ(elements(parameters_of(model, stage_of(model, plan.parallel, 1)), kTower), 0);
}

/// What deeper layers of the tower add stands behind the layer that it is added to.
TEST(Towers, AddTheirRowsWhereTheLayersAre) {
  const Plan plan = plan_with(2, 1, 2);
  const Model model = network(plan, "qwen3_vl");
  const auto adding = [&](std::int64_t k) {
    std::int64_t count = 0;
    for (const StageChunk& chunk : stage_of(model, plan.parallel, k).chunks)
      for (const SegmentRepeat& repeat : chunk.repeats)
        count += model.segments[repeat.segment].name == "images among hidden states" ? 1 : 0;
    return count;
  };
  EXPECT_EQ(adding(0), 3);
  EXPECT_EQ(adding(1), 0);
}

TEST(Towers, WantTheLayersThatTheirRowsAreAddedToOnTheFirstStage) {
  const Plan plan = plan_with(4, 1, 4);  // two layers each, and rows behind three
  const auto problem = division_problem(network(plan, "qwen3_vl"), plan);
  ASSERT_TRUE(problem);
  EXPECT_THAT(problem->message.text, HasSubstr("rows of the tower are added behind 3"));
  EXPECT_EQ(problem->expected, "2");
}

TEST(Towers, LeaveTheLiveBytesAsTheyFoundThem) {
  for (const char* type : {"qwen2_vl", "qwen3_vl"})
    for (const FrozenParts frozen :
         {FrozenParts::nothing, FrozenParts::tower, FrozenParts::tower_and_projector})
      for (const auto how : {Checkpointing::none, Checkpointing::full})
        for (const auto& [tensor, stages] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}}) {
          Plan plan = plan_with(4, tensor, stages);
          plan.workload.images.frozen = frozen;
          plan.checkpointing = how;
          const Model model = network(plan, type);
          const auto problem = division_problem(model, plan);
          ASSERT_FALSE(problem) << type << ": " << problem->message.text;
          const RankModel share(model, plan);
          for (const std::int64_t rank : {0, 3}) {
            const Played p = play(lower(share.model(), plan, share.run(), rank));
            EXPECT_EQ(p.at_end, p.profile.at_start)
                << type << " tensor " << tensor << " stages " << stages << " rank " << rank;
            for (const std::int64_t least : p.least) EXPECT_GE(least, 0);
          }
        }
}

std::int64_t activations(const Model& model, const Plan& plan) {
  const Estimate e = estimate(model, plan, Calibration{});
  return e.breakdown[index_of(Category::activations)].at_peak;
}

/// A frozen tower keeps nothing, whatever its depth: recomputing layers does not run it again.
TEST(Towers, KeepNothingWhereTheyAreFrozen) {
  for (const auto how : {Checkpointing::none, Checkpointing::full}) {
    Plan plan = plan_with(2, 2, 1);
    plan.checkpointing = how;
    const Model model = network(plan);
    const std::int64_t frozen = activations(model, plan);
    plan.workload.images.frozen = FrozenParts::nothing;
    const std::int64_t trained = activations(network(plan), plan);
    // Of each layer at least the inputs of its two norms: patches × width in 16 bits.
    EXPECT_GE(trained - frozen, kDepth * 2 * (4 * kTokens * 64 * 2));
  }
}

TEST(Towers, WidenTheUpperBoundAndSayWhy) {
  const Plan plan = plan_with(2, 2, 1);
  const Model model = network(plan);
  EXPECT_GT(estimate(model, plan, Calibration{}).most_over, 1);
  EXPECT_THAT(model.facts.assumed, testing::Contains(HasSubstr("no run confirms it")));
}

TEST(Towers, AreNotDividedAlongSequences) {
  Plan plan = plan_with(2, 1, 1);
  plan.parallel.context = 2;
  const auto problem = division_problem(network(plan), plan);
  ASSERT_TRUE(problem);
  EXPECT_THAT(problem->message.text, HasSubstr("reads images cannot be estimated divided"));
}

}  // namespace
}  // namespace shardplan::towers_test
