// Bytes of a checkpoint by framework, against what each is known to write.
#include "saving/saved_run.h"

#include <gtest/gtest.h>

#include "support/plan_testing.h"
#include "trainers/description.h"
#include "trainers/registry.h"

namespace shardplan::saved_run_test {
namespace {

/// 2^20 elements in tensors that no allocator rounds: psi.
constexpr std::int64_t kPsi = 1 << 20;

Model model() {
  return equal_tensors(4, kPsi / 4);
}

SavedRun saved(const Plan& plan) {
  return *saved_run(model(), plan);
}

Plan under_trainer(Plan plan) {
  for (const TrainerDescription* trainer : trainers())
    if (trainer->name == "hf_trainer") plan.trainer = trainer;
  return plan;
}

TEST(SavedRun, OneRankWritesWeightsAndStatesOfAWholeModel) {
  const SavedRun run = saved(plan_of(FrameworkKind::ddp, "bf16-autocast", 16));
  EXPECT_EQ(run.weights.count(), 4 * kPsi);  // model.safetensors in fp32
  EXPECT_EQ(run.states.count(), 8 * kPsi);   // optimizer.pt: two moments in fp32
  EXPECT_EQ(run.written_by_node, run.total());
  EXPECT_EQ(run.read_by_node, run.total());
  EXPECT_EQ(saved(plan_of(FrameworkKind::single, "bf16-pure", 1)).total().count(), 6 * kPsi);
}

TEST(SavedRun, EachRankOfZeroWritesItsPartition) {
  const SavedRun stage2 = saved(zero_plan(2, "bf16-master", 16));
  EXPECT_EQ(stage2.weights.count(), 2 * kPsi);  // mp_rank_00_model_states.pt
  EXPECT_EQ(stage2.states.count(), 12 * kPsi);  // fp32 partitions and two moments
  EXPECT_EQ(stage2.written_by_node.count(), 2 * kPsi + 12 * kPsi / 2);  // of two nodes
  const SavedRun stage3 = saved(zero_plan(3, "bf16-master", 16));
  EXPECT_EQ(stage3.weights.count(), 0);  // the partitions say the same
  EXPECT_EQ(stage3.states.count(), 12 * kPsi);
  EXPECT_EQ(stage3.read_by_node.count(), 6 * kPsi);
}

TEST(SavedRun, TransformersTrainerWritesTheWeightsBesideAnEngine) {
  const SavedRun stage2 = saved(under_trainer(zero_plan(2, "bf16-master", 8)));
  EXPECT_EQ(stage2.weights.count(), 4 * kPsi);  // mp_rank_00_model_states.pt, model.safetensors
  EXPECT_EQ(stage2.read_by_node.count(), 14 * kPsi);
  Plan stage3 = under_trainer(zero_plan(3, "bf16-master", 8));
  EXPECT_EQ(saved(stage3).weights.count(), 0);
  stage3.framework.deepspeed.zero.gather_16bit_weights_on_model_save = true;
  EXPECT_EQ(saved(stage3).weights.count(), 2 * kPsi);
}

TEST(SavedRun, FsdpWritesShardsOrOneRankAll) {
  Plan plan = plan_of(FrameworkKind::fsdp2, "bf16-autocast", 16);
  const SavedRun shards = saved(plan);
  EXPECT_EQ(shards.total().count(), 12 * kPsi);
  EXPECT_EQ(shards.written_by_node.count(), 6 * kPsi);
  plan.framework.fsdp2.state_dict_type = StateDictType::full;
  EXPECT_EQ(saved(plan).written_by_node.count(), 12 * kPsi);
  EXPECT_EQ(saved(under_trainer(plan)).written_by_node.count(), 16 * kPsi);
}

TEST(SavedRun, MegatronDividesAllOfIt) {
  const SavedRun run = saved(plan_of(FrameworkKind::megatron, "bf16-master", 16));
  EXPECT_EQ(run.total().count(), 14 * kPsi);
  EXPECT_EQ(run.written_by_node.count(), 7 * kPsi);
}

TEST(SavedRun, AdaptersAloneUnlessTheEngineSavesItsWholeModule) {
  ModelBuilder m({});
  m.begin_repeat("layers", 1);
  m.tensor("weight.value", {kPsi}, ParameterKind::linear);
  m.tensor("lora_A.value", {1 << 16}, ParameterKind::linear);
  m.end_repeat();
  Model built = m.build();
  built.parameters[0].trainable = false;
  built.parameters[1].adapter = true;
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.workload.lora.emplace();
  const SavedRun adapters = *saved_run(built, plan);
  EXPECT_EQ(adapters.weights.count(), 4 * (1 << 16));
  EXPECT_EQ(adapters.states.count(), 8 * (1 << 16));
  Plan engine = zero_plan(2, "bf16-master", 8);
  engine.workload.lora.emplace();
  EXPECT_GT(saved_run(built, engine)->weights.count(), 2 * kPsi);
  EXPECT_LT(saved_run(built, under_trainer(engine))->weights.count(), kPsi);
}

TEST(SavedRun, OurOwnEngineKeepsNoRun) {
  EXPECT_FALSE(saved_run(model(), plan_of(FrameworkKind::native, "bf16-master", 2)));
}

}  // namespace
}  // namespace shardplan::saved_run_test
