// Expert parallelism under FSDP2, as torchtitan and NeMo Automodel divide it.
#include <gmock/gmock.h>

#include "frameworks/fsdp2/units.h"
#include "frameworks/registry.h"
#include "load/hardware.h"
#include "load/job.h"
#include "lowering/lower.h"
#include "parallel/degrees.h"
#include "parallel/shard.h"
#include "parallel/sharding.h"
#include "simulator/memory.h"
#include "support/block_testing.h"
#include "support/error_of.h"
#include "support/plan_testing.h"
#include "trainers/registry.h"

namespace shardplan::fsdp2_experts_test {
namespace {

constexpr std::int64_t kHidden = 512, kInner = 1792, kExperts = 8, kChosen = 2, kLayers = 3;
constexpr std::int64_t kTokens = 2 * 128;
constexpr std::int64_t kExpertNumel = 3 * kHidden * kInner;  ///< of one expert
constexpr std::int64_t kRows = kChosen * kTokens;

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

const TrainerDescription* trainer_named(std::string_view name) {
  for (const TrainerDescription* trainer : trainers())
    if (trainer->name == name) return trainer;
  return nullptr;
}

Plan expert_plan(std::int64_t ranks, std::int64_t degree, std::string_view precision = "bf16-pure",
                 std::string_view trainer = "loop") {
  Plan plan = plan_of(FrameworkKind::fsdp2, precision, ranks);
  plan.workload.micro_batch = 2;
  plan.workload.sequence_length = 128;
  plan.parallel.expert = degree;
  plan.framework.fsdp2.reduce_dtype = DType::f32;
  plan.trainer = trainer_named(trainer);
  return plan;
}

Program program_of_rank(const Plan& plan) {
  const Model model = mixtral(plan);
  return lower(model, plan, run_segments(model, plan), 0);
}

std::int64_t resident(const Plan& plan, Category category) {
  std::int64_t sum = 0;
  for (const Event& e : program_of_rank(plan).resident)
    if (e.category == category) sum += e.bytes * e.count;
  return sum;
}

std::int64_t sent(const Plan& plan, std::string_view what) {
  std::int64_t sum = 0;
  for (const TrafficLine& line : estimate(whole_mixtral(plan), plan, Calibration{}).traffic)
    if (line.what == what) sum += line.bytes_per_step;
  return sum;
}

constexpr std::int64_t kNorms = 2 * kLayers + 1;

/// Experts over the degree and then over the ranks with the same ones, the rest over all: every
/// dimension here divides, so that the ranks' shards are the model, norms rounded up to 512 bytes.
TEST(Fsdp2Experts, ShardsOfAllRanksAreTheModel) {
  for (const std::int64_t degree : {1, 2, 4, 8}) {
    const Plan plan = expert_plan(8, degree);
    const std::int64_t all = whole_mixtral(plan).parameter_count();
    EXPECT_EQ(resident(plan, Category::parameters), all / 8 * 2 + kNorms * (512 - kHidden / 8 * 2))
        << degree;
    EXPECT_EQ(resident(plan, Category::optimizer_states),
              resident(expert_plan(8, 1), Category::optimizer_states))
        << degree;
  }
}

/// More ranks than experts: dimension 0 would be padded to one expert a rank; dimension 1 is cut.
TEST(Fsdp2Experts, FewExpertsAreCutAlongTheirRows) {
  const std::int64_t all = whole_mixtral(expert_plan(16, 2)).parameter_count();
  // Norms, and routers of half a row a rank, which have a whole one.
  const std::int64_t rounded = kNorms * (512 - kHidden / 16 * 2) + kLayers * kHidden / 2 * 2;
  EXPECT_EQ(resident(expert_plan(16, 2), Category::parameters), all / 16 * 2 + rounded);
  const std::int64_t padded = kLayers * kExperts * kExpertNumel / 16 * 2;  // as much again
  EXPECT_EQ(resident(expert_plan(16, 1), Category::parameters), all / 16 * 2 + padded + rounded);
}

TEST(Fsdp2Experts, AUnitGathersItsExpertsFromTheRanksThatHaveThem) {
  const Plan plan = expert_plan(8, 4);
  const Model model = mixtral(plan);
  const ModelRun run = run_segments(model, plan);
  const Fsdp2Units units(model, plan, run);
  for (std::size_t s = 0; s < run.segments.size(); ++s) {
    if (!units.is_block(s)) continue;
    ASSERT_EQ(units.of(s)->experts.size(), 1U);
    const Fsdp2Unit& experts = units.of(s)->experts.front();
    EXPECT_EQ(experts.ranks, 2);
    EXPECT_EQ(experts.group, Group::expert_data);
    EXPECT_EQ(experts.gathered, kExperts / 4 * kExpertNumel * 2);
    EXPECT_EQ(experts.trained, kExperts / 4 * kExpertNumel);
    EXPECT_EQ(units.of(s)->ranks, 8);
    EXPECT_LT(units.of(s)->gathered, kExpertNumel * 2);
  }
}

TEST(Fsdp2Experts, RowsGoThereAndBackInBothPasses) {
  const Plan plan = expert_plan(8, 4);
  // Back they come in the type of the parameters too: fp32 begins at home.
  EXPECT_EQ(sent(plan, "expert all-to-all"), kLayers * 4 * kRows * 2 * kHidden * 3 / 4);
  Plan uneven = plan;
  uneven.parallel.expert_imbalance = 1.5;
  EXPECT_GT(sent(uneven, "expert all-to-all"), sent(plan, "expert all-to-all"));
}

/// Beside what the layer keeps anyway: the index of rows in the order of experts twice, and results
/// in fp32 in place of 16 bits.
TEST(Fsdp2Experts, ABlockKeepsIndicesAndResultsInFp32) {
  const auto kept = [](const Plan& plan) { return kept_by_first_block(mixtral(plan), plan); };
  const std::int64_t more = kept(expert_plan(8, 4)) - kept(expert_plan(8, 1));
  EXPECT_EQ(more, kRows * (2 * 8 + 2 * kHidden));
}

/// NeMo Automodel leaves experts alone that no other rank has; torchtitan gives them to
/// fully_shard, which makes a second copy for use.
TEST(Fsdp2Experts, LoneExpertsAreCopiedByTorchtitanOnly) {
  const TrainerDescription& torchtitan = *trainer_named("torchtitan");
  TrainerDescription leaves = torchtitan;  // the same but for that
  leaves.shards_lone_experts = false;
  const auto peak = [](const TrainerDescription& trainer) {
    Plan plan = expert_plan(8, 8);
    plan.trainer = &trainer;
    return simulate_memory(program_of_rank(plan)).peak;
  };
  EXPECT_GE(peak(torchtitan) - peak(leaves), kExpertNumel * 2);
  const Plan plan = expert_plan(8, 8);
  const Model model = mixtral(plan);
  const ModelRun run = run_segments(model, plan);
  const Fsdp2Units units(model, plan, run);
  for (std::size_t s = 0; s < run.segments.size(); ++s)
    if (units.is_block(s)) {
      EXPECT_TRUE(units.of(s)->experts.front().apart);
      EXPECT_EQ(units.of(s)->experts.front().unsharded, 0);
    }
}

TEST(Fsdp2Experts, EveryProgramLeavesTheLiveBytesAsItFoundThem) {
  for (const std::string_view precision : {"bf16-pure", "bf16-autocast"})
    for (const std::string_view trainer : {"loop", "torchtitan"})
      for (const std::int64_t degree : {2, 8})
        for (const bool reshards : {true, false})
          for (const bool each : {true, false})
            for (const auto policy : {Checkpointing::none, Checkpointing::full}) {
              Plan plan = expert_plan(8, degree, precision, trainer);
              plan.workload.gradient_accumulation = 3;
              plan.framework.fsdp2.reshard_after_forward = reshards;
              plan.framework.fsdp2.sync_each_batch = each;
              plan.checkpointing = policy;
              const Program program = program_of_rank(plan);
              EXPECT_EQ(simulate_memory(program).phases[2].end, total_bytes(program.resident))
                  << precision << trainer << degree << reshards << each << static_cast<int>(policy);
            }
}

TEST(Fsdp2Experts, RefusesWhatNoLoweringCovers) {
  const auto problem = [](auto change) {
    Plan plan = expert_plan(8, 2);
    change(plan);
    const auto found = traits_of(plan).plan_problem(plan);
    return found ? found->key : std::string();
  };
  EXPECT_EQ(problem([](Plan&) {}), "");
  EXPECT_EQ(problem([](Plan& p) { p.parallel.tensor = 2; }), "parallel.tensor");
  EXPECT_EQ(problem([](Plan& p) { p.framework.fsdp2.hybrid_shard_size = 4; }),
            "framework.hybrid_shard_size");
  EXPECT_EQ(problem([](Plan& p) { p.framework.fsdp2.cpu_offload = true; }),
            "framework.cpu_offload");
  EXPECT_EQ(problem([](Plan& p) { p.framework.fsdp2.units = Fsdp2Wrap::whole; }),
            "framework.units");
  // Experts that are products of all tokens with all experts have no rows to send.
  const Plan plan = expert_plan(8, 2);
  const Model whole = model_of(
      R"({"model_type": "llama4_text", "num_hidden_layers": 2, "hidden_size": 256,
          "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64,
          "intermediate_size": 512, "intermediate_size_mlp": 512, "vocab_size": 512})",
      build_options(plan));
  const auto found = sharding_problem(whole, plan);
  EXPECT_TRUE(found && found->key == "parallel.expert");
  EXPECT_FALSE(sharding_problem(whole_mixtral(plan), plan).has_value());
  Plan many = expert_plan(8, 3);
  EXPECT_TRUE(degree_problem(whole_mixtral(many), many).has_value());
}

}  // namespace
}  // namespace shardplan::fsdp2_experts_test
