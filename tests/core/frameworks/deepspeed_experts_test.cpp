// Experts under DeepSpeed: its own sparse layers with their fixed capacity, and AutoEP beyond ZeRO
// stages 1 and 2.
#include <gmock/gmock.h>

#include "frameworks/deepspeed/buckets.h"
#include "frameworks/deepspeed/engine.h"
#include "frameworks/deepspeed/expert_groups.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "parallel/shard.h"
#include "parallel/sharding.h"
#include "program/pinned_memory.h"
#include "simulator/memory.h"
#include "support/block_testing.h"
#include "support/error_of.h"
#include "support/plan_testing.h"

namespace shardplan::deepspeed_experts_test {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kHidden = 512, kInner = 1792, kExperts = 8, kChosen = 2, kLayers = 3;
constexpr std::int64_t kTokens = 2 * 128;

Model whole_mixtral(const Plan& plan) {
  return model_of(Json{{"model_type", "mixtral"},
                       {"hidden_size", kHidden},
                       {"intermediate_size", kInner},
                       {"num_hidden_layers", kLayers},
                       {"num_attention_heads", 8},
                       {"num_local_experts", kExperts},
                       {"num_experts_per_tok", kChosen},
                       {"vocab_size", 4096}}
                      .dump(),
                  build_options(plan));
}

/// One rank's share.
Model mixtral(const Plan& plan) {
  const Model whole = whole_mixtral(plan);
  return is_sharded(plan) ? shard(whole, plan) : whole;
}

Plan expert_plan(int stage, std::int64_t ranks, std::int64_t degree) {
  Plan plan = zero_plan(stage, "bf16-master", ranks);
  plan.workload.micro_batch = 2;
  plan.parallel.expert = degree;
  return plan;
}

Plan moe_plan(int stage, double capacity, std::int64_t degree = 2) {
  Plan plan = expert_plan(stage, 2, degree);
  plan.framework.deepspeed.moe = DeepSpeedMoe{.capacity_factor = capacity};
  return plan;
}

std::int64_t kept_by_a_block(const Plan& plan) {
  return kept_by_first_block(mixtral(plan), plan);
}

TEST(DeepSpeedMoe, KeepsRowsByItsCapacityWhoeverIsSentThem) {
  const std::int64_t once = kept_by_a_block(moe_plan(1, 1.0));
  const std::int64_t twice = kept_by_a_block(moe_plan(1, 2.0));
  // Indices of slots, two copies of what experts are given, four tensors between their products.
  const std::int64_t slots = kChosen * kTokens;
  EXPECT_EQ(twice - once, slots * (8 + 2 * 2 * kHidden + 4 * 2 * kInner));
}

TEST(DeepSpeedMoe, SendsItsSlotsThereAndBackInBothPasses) {
  std::int64_t sent = 0;
  const Plan plan = moe_plan(1, 1.25);
  for (const TrafficLine& line : estimate(whole_mixtral(plan), plan, Calibration{}).traffic)
    if (line.what == "expert all-to-all") sent += line.bytes_per_step;
  const std::int64_t slots = kChosen * kTokens * 5 / 4;
  EXPECT_EQ(sent, kLayers * 4 * slots * 2 * kHidden / 2);  // half stays
}

TEST(DeepSpeedMoe, HasTheModelsParametersAndNoCopyOfThem) {
  const Model own = mixtral(moe_plan(1, 1.0, 1));
  EXPECT_EQ(own.parameter_count(), mixtral(expert_plan(1, 2, 1)).parameter_count());
  const Plan plan = moe_plan(1, 1.0);
  const Model model = mixtral(plan);
  const ExpertGroups groups(model, plan);
  EXPECT_EQ(groups.elements(), kLayers * kExperts / 2 * 3 * kHidden * kInner);
  EXPECT_EQ(groups.replaced_bytes(plan, 2), 0);
  Plan autoep = plan;
  autoep.framework.deepspeed.moe.reset();
  EXPECT_EQ(groups.replaced_bytes(autoep, 2), 2 * 2 * groups.elements());
}

TEST(DeepSpeedExperts, EveryProgramLeavesTheLiveBytesAsItFoundThem) {
  for (const int stage : {0, 1, 2, 3})
    for (const bool offload : {false, true})
      for (Plan plan : {moe_plan(stage, 1.5), moe_plan(stage, 1.0, 1), expert_plan(stage, 4, 2),
                        expert_plan(stage, 2, 2)}) {
        if ((offload && stage == 0) || (stage == 3 && plan.framework.deepspeed.moe)) continue;
        plan.workload.gradient_accumulation = 2;
        if (offload) plan.framework.deepspeed.zero.offload_optimizer.device = OffloadDevice::cpu;
        const Model model = mixtral(plan);
        const Program program = lower(model, plan, run_segments(model, plan), 0);
        EXPECT_EQ(simulate_memory(program).phases[2].end, total_bytes(program.resident))
            << stage << offload;
      }
}

/// FP16_Optimizer's step at its last group: fp32 gradients of all groups, fp32 casts and 16-bit
/// gradients of the last.
TEST(DeepSpeedExperts, StageZeroTakesItsGroupsOneByOne) {
  const Plan plan = expert_plan(0, 2, 2);
  const Model model = mixtral(plan);
  const Program program = lower(model, plan, run_segments(model, plan), 0);
  const std::int64_t all = model.trainable_count();
  const std::int64_t last = ExpertGroups(model, plan).sizes().back();
  const MemoryProfile memory = simulate_memory(program);
  EXPECT_NEAR(static_cast<double>(memory.phases[2].peak - memory.phases[2].end),
              static_cast<double>(4 * all + (4 + 2) * last), 1e4);
}

/// Each group's master weights, gradients and staging are pinned on their own.
TEST(DeepSpeedExperts, OnTheHostEachGroupIsPinnedAlone) {
  Plan plan = expert_plan(1, 4, 2);
  plan.framework.deepspeed.zero.offload_optimizer.device = OffloadDevice::cpu;
  const Model model = mixtral(plan);
  const HostMemory host = lower(model, plan, run_segments(model, plan), 0).host;
  const ExpertGroups groups(model, plan);
  const std::int64_t dense = (model.trainable_count() - groups.elements()) / 4;
  std::int64_t pinned = pinned_block(2 * kExperts / 2 * kHidden * kInner);  // a gradient's buffer
  for (const std::int64_t part : {dense, groups.partition()})
    pinned += 2 * pinned_block(4 * part) + pinned_block(2 * part);
  EXPECT_EQ(groups.sizes().size(), 1U);
  EXPECT_EQ(host.pinned, pinned);
  EXPECT_EQ(host.pageable, 8 * (dense + groups.partition()));
}

TEST(DeepSpeedExperts, StageThreeDividesExpertsOverThoseThatHaveThem) {
  const Plan plan = expert_plan(3, 8, 2);
  const Model model = mixtral(plan);
  const Estimate e = estimate(whole_mixtral(plan), plan, Calibration{});
  const std::int64_t experts = ExpertGroups(model, plan).elements();
  const std::int64_t own = (model.trainable_count() - experts) / 8 + experts / 4;
  // AutoEP's parts, and the model's own experts, which the engine's names keep whole.
  EXPECT_EQ(resident(e, Category::parameters), 2 * own + 2 * 2 * experts);
  EXPECT_EQ(resident(e, Category::optimizer_states), 8 * own);
  std::int64_t gathered = 0;
  for (const TrafficLine& line : e.traffic)
    if (line.what == "gradient reduce-scatter") gathered += line.bytes_per_step;
  EXPECT_EQ(gathered, 2 * ((model.trainable_count() - experts) / 8 * 7 + experts / 4 * 3));
}

/// A bucket is reduced when gradients of experts follow others, and the other way round.
TEST(DeepSpeedExperts, StageThreeFlushesItsBucketAroundExperts) {
  const Plan plan = expert_plan(3, 4, 2);
  const Model model = mixtral(plan);
  const ModelRun run = run_segments(model, plan);
  const auto whole = [](ParameterId) { return LayerRange{}; };
  constexpr std::int64_t kRoomy = 1'000'000'000;
  EXPECT_EQ(schedule_buckets(model, run, kRoomy, whole).flushes, 1);
  const BucketSchedule apart = schedule_buckets(model, run, kRoomy, whole, true);
  EXPECT_EQ(apart.flushes, 2 * kLayers + 1);
  EXPECT_EQ(apart.most_elements, kExperts / 2 * 3 * kHidden * kInner);
}

std::string error(const std::string& patch) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  Json job = Json::parse(R"({"model": "mixtral-8x7b", "cluster": "8xA100-80GB",
      "workload": {"micro_batch": 1}, "parallel": {"expert": 4},
      "framework": {"name": "deepspeed", "zero_stage": 2}})");
  job.merge_patch(Json::parse(patch));
  return error_text([&] { load_job(job, "job.json", {&hardware, ""}); });
}

TEST(DeepSpeedExperts, WhatCannotBeIsNamed) {
  EXPECT_EQ(error("{}"), "no error");
  EXPECT_EQ(error(R"({"framework": {"zero_stage": 0}})"), "no error");
  EXPECT_EQ(error(R"({"framework": {"moe": {"capacity_factor": 1.25}}})"), "no error");
  EXPECT_THAT(error(R"({"framework": {"moe": {}, "zero_stage": 3}})"),
              HasSubstr("framework.moe: DeepSpeed refuses its own sparse layers at ZeRO stage 3"));
  EXPECT_EQ(error(R"({"framework": {"zero_stage": 3}})"), "no error");
  EXPECT_THAT(error(R"({"workload": {"method": "lora"}})"), HasSubstr("AutoEP stops under LoRA"));
  EXPECT_THAT(error(R"({"model": "nemotron-3-nano-30b-a3b"})"),
              HasSubstr("no preset has experts without a gate"));
  EXPECT_THAT(error(R"({"model": "llama-2-7b", "parallel": null, "framework": {"moe": {}}})"),
              HasSubstr("a dense model has no sparse layers"));
  EXPECT_THAT(error(R"({"framework": {"moe": {"capacity": 2}}})"), HasSubstr("capacity_factor"));
  EXPECT_THAT(error(R"({"model": "gpt-oss-20b", "framework": {"moe": {}}})"),
              HasSubstr("experts of this architecture"));
}

}  // namespace
}  // namespace shardplan::deepspeed_experts_test
