// LoRA under Megatron-LM as mcore-bridge adds it: joint linears, experts, tensor-parallel ranks.
// Expected values are counted by hand from its tuners/lora.py.
#include <gmock/gmock.h>

#include "frameworks/registry.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "parallel/problem.h"
#include "parallel/shard.h"
#include "support/error_of.h"
#include "support/plan_testing.h"

namespace shardplan::megatron_adapters_test {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kLayers = 4, kHidden = 512, kFfn = 1536, kQuery = 512, kKeys = 128;
constexpr std::int64_t kRank = 16;

Plan adapted(std::int64_t gpus) {
  Plan plan = plan_of(FrameworkKind::megatron, "bf16-master", gpus);
  plan.workload.micro_batch = 2;
  plan.workload.sequence_length = 256;
  plan.workload.lora = Lora{.rank = kRank, .targets = {"all-linear"}};
  return plan;
}

Model whole(const Plan& plan, Json more = Json::object()) {
  Json config{{"model_type", "llama"},     {"hidden_size", kHidden},
              {"intermediate_size", kFfn}, {"num_hidden_layers", kLayers},
              {"num_attention_heads", 8},  {"num_key_value_heads", 2},
              {"vocab_size", 1024},        {"tie_word_embeddings", false}};
  config.update(more);
  return model_of(config.dump(), build_options(plan));
}

const Parameter* tensor(const Model& model, std::string_view end) {
  for (const Parameter& p : model.parameters)
    if (p.name.ends_with(end)) return &p;
  return nullptr;
}

TEST(MegatronAdapters, OfJointLinearsShareOneA) {
  const Model model = whole(adapted(1));
  const std::int64_t qkv = kHidden + kQuery + 2 * kKeys, proj = kQuery + kHidden;
  const std::int64_t fc1 = kHidden + 2 * kFfn, fc2 = kFfn + kHidden;
  EXPECT_EQ(model.trainable_count(), kLayers * kRank * (qkv + proj + fc1 + fc2));
  EXPECT_NE(tensor(model, "q_proj.lora_A.weight"), nullptr);
  EXPECT_EQ(tensor(model, "k_proj.lora_A.weight"), nullptr);
  EXPECT_NE(tensor(model, "k_proj.lora_B.weight"), nullptr);
}

TEST(MegatronAdapters, OfTransformersLinearsHaveEachTheirOwn) {
  Plan plan = adapted(1);
  plan.framework = Framework{};
  plan.framework.kind = FrameworkKind::single;
  const std::int64_t attention = 4 * kHidden + 2 * kQuery + 2 * kKeys;
  const std::int64_t mlp = 3 * kHidden + 3 * kFfn;
  EXPECT_EQ(whole(plan).trainable_count(), kLayers * kRank * (attention + mlp));
}

TEST(MegatronAdapters, AreCutBesideTheirLinears) {
  Plan plan = adapted(2);
  plan.parallel.tensor = 2;
  plan.parallel.sequence_parallel = true;
  const Model part = shard(whole(plan), plan);
  EXPECT_EQ(tensor(part, "q_proj.lora_A.weight")->numel, kRank * kHidden);      // whole
  EXPECT_EQ(tensor(part, "q_proj.lora_B.weight")->numel, kRank * kQuery / 2);   // columns
  EXPECT_EQ(tensor(part, "o_proj.lora_A.weight")->numel, kRank * kQuery / 2);   // rows
  EXPECT_EQ(tensor(part, "o_proj.lora_B.weight")->numel, kRank * kHidden);      // whole
  EXPECT_EQ(tensor(part, "down_proj.lora_A.weight")->numel, kRank * kFfn / 2);  // rows
  EXPECT_EQ(tensor(part, "up_proj.lora_B.weight")->numel, kRank * kFfn / 2);    // columns
}

TEST(MegatronAdapters, KeepTheBaseInSixteenBitsAndStatesForThemselves) {
  const Plan plan = adapted(1);
  const Model model = whole(plan);
  const Estimate e = estimate(model, plan, Calibration{});
  const std::int64_t trained = model.trainable_count(), all = model.parameter_count();
  EXPECT_EQ(resident(e, Category::parameters), 2 * all);
  EXPECT_EQ(resident(e, Category::gradients), 4 * trained);
  EXPECT_EQ(resident(e, Category::master_parameters), 4 * trained);
  EXPECT_EQ(resident(e, Category::optimizer_states), 8 * trained);
}

TEST(MegatronAdapters, GatherAndReduceRowsAsWideAsTheRank) {
  Plan plan = adapted(2);
  plan.parallel.tensor = 2;
  plan.parallel.sequence_parallel = true;
  const Model part = shard(whole(plan), plan);
  int gathers = 0, reduces = 0;
  for (const Segment& segment : part.segments)
    for (const Op& op : segment.graph.ops()) {
      if (op.kind != OpKind::communicate) continue;
      const Extent extent = segment.graph.value(op.out).extent;
      if (extent.per != kRank) continue;
      gathers += op.exchange.forward == Exchange::all_gather ? 1 : 0;
      reduces += op.exchange.forward == Exchange::reduce_scatter ? 1 : 0;
    }
  EXPECT_EQ(gathers, 2);  // what A made for qkv and for fc1
  EXPECT_EQ(reduces, 2);  // what A made for proj and for fc2
}

Json experts() {
  return {{"model_type", "qwen3_moe"},       {"num_experts", 8}, {"num_experts_per_tok", 2},
          {"moe_intermediate_size", 256},    {"head_dim", 64},   {"decoder_sparse_step", 1},
          {"mlp_only_layers", Json::array()}};
}

TEST(MegatronAdapters, OfExpertsAreAPairForEachAndGoWithThem) {
  Plan plan = adapted(4);
  const std::int64_t attention = 2 * kHidden + 2 * kQuery + 2 * kKeys;
  const std::int64_t expert = (kHidden + 2 * 256) + (256 + kHidden);
  const Model model = whole(plan, experts());
  EXPECT_EQ(model.trainable_count(), kLayers * kRank * (attention + 8 * expert));
  plan.parallel.expert = 4;
  EXPECT_EQ(shard(model, plan).trainable_count(), kLayers * kRank * (attention + 2 * expert));
}

// The first block of the network reads a frozen table's rows, those of later stages what was sent.
TEST(MegatronAdapters, InStagesFreeWhatTheyMake) {
  for (const Checkpointing policy :
       {Checkpointing::none, Checkpointing::full, Checkpointing::selective}) {
    Plan plan = adapted(2);
    plan.parallel.pipeline = 2;
    plan.workload.gradient_accumulation = 4;
    plan.checkpointing = policy;
    const Model model = whole(plan);
    const std::int64_t blocks = model.trainable_count() / 2;
    const Estimate e = estimate(model, plan, Calibration{});
    EXPECT_EQ(resident(e, Category::gradients), 4 * blocks) << name_of(policy);
    EXPECT_GT(e.breakdown[index_of(Category::activations)].at_peak, 0) << name_of(policy);
  }
}

TEST(MegatronAdapters, ThatMcoreBridgeStopsAtAreRefused) {
  const auto key = [](const Plan& plan) { return traits_of(plan).plan_problem(plan)->key; };
  Plan plan = adapted(1);
  EXPECT_FALSE(traits_of(plan).plan_problem(plan));
  plan.workload.lora->magnitudes = true;
  EXPECT_EQ(key(plan), "workload.lora.dora");
  plan = adapted(1);
  plan.workload.lora->base = Quantization::nf4;
  EXPECT_EQ(key(plan), "workload.lora.quantization");
  plan = adapted(1);
  plan.framework.megatron.transformer_engine = false;
  EXPECT_EQ(key(plan), "framework.transformer_impl");
  plan = adapted(4);
  plan.parallel.tensor = plan.parallel.expert_tensor = 2;
  plan.parallel.sequence_parallel = true;
  const Model model = whole(plan, experts());
  EXPECT_EQ(traits_of(plan).sharding_problem(model, plan)->key, "parallel.expert_tensor");
}

TEST(MegatronExperts, BesideATensorDegreeWantTokensDivided) {
  Plan plan = plan_of(FrameworkKind::megatron, "bf16-master", 4);
  plan.parallel.tensor = 2;
  const Model model = whole(plan, experts());
  EXPECT_EQ(traits_of(plan).sharding_problem(model, plan)->key, "parallel.sequence_parallel");
  plan.parallel.sequence_parallel = true;
  EXPECT_FALSE(traits_of(plan).sharding_problem(model, plan));
  plan.parallel.sequence_parallel = false;
  EXPECT_FALSE(traits_of(plan).sharding_problem(whole(plan), plan));  // a dense model may
}

}  // namespace
}  // namespace shardplan::megatron_adapters_test
