// What DeepSpeed's step has the host do where its optimizer is offloaded.
#include <gtest/gtest.h>

#include "frameworks/deepspeed/stages.h"

namespace shardplan::host_update_test {
namespace {

constexpr std::int64_t kElements = 1000;

/// Bytes that PyTorch's passes around CPUAdam read and write.
std::int64_t passes(const Plan& plan, const Engine& engine) {
  Program program;
  ProgramBuilder b(program);
  update_on_host(b, plan, engine, kElements);
  std::int64_t bytes = 0, updated = 0;
  for (const Event& e : program.events) {
    if (e.kind != Event::Kind::host_optimizer) continue;
    (e.optimizer == HostOptimizer::deepspeed_passes ? bytes : updated) += e.bytes;
  }
  EXPECT_EQ(updated, kElements);
  return bytes;
}

Plan plan_of(int stage, DeepSpeedVersion version) {
  Plan plan;
  plan.cluster.gpus_per_node = 2;
  plan.framework.deepspeed.zero.stage = stage;
  plan.framework.deepspeed.version = version;
  return plan;
}

TEST(HostUpdate, ScalesGradientsAndCastsMasters) {
  Engine engine;  // 16 bits with masters in fp32
  constexpr std::int64_t kScaled = 4 + 4, kCast = 4 + 2;
  for (const int stage : {1, 2, 3})
    EXPECT_EQ(passes(plan_of(stage, {0, 19, 6}), engine), kElements * (kScaled + kCast)) << stage;
  EXPECT_EQ(passes(plan_of(2, {0, 16, 0}), engine), kElements * kScaled)
      << "sent in fp32 and cast on the GPU";
}

/// With all cores for itself both move what the host's memory gives.
TEST(HostUpdate, OfARankAloneIsBytesOfAllCores) {
  Plan plan = plan_of(2, {0, 19, 6});
  plan.cluster.gpus_per_node = 1;
  Program program;
  ProgramBuilder b(program);
  update_on_host(b, plan, Engine{}, kElements);
  ASSERT_EQ(program.events.size(), 1u);
  EXPECT_EQ(program.events.front().optimizer, HostOptimizer::deepspeed_all_cores);
  EXPECT_EQ(program.events.front().bytes, kElements * (28 + 8 + 6));
}

TEST(HostUpdate, CopiesFp32WeightsOnlyIntoTheBufferOfStages1And2) {
  Engine engine;
  engine.b = 4;
  EXPECT_EQ(passes(plan_of(2, {0, 19, 6}), engine), kElements * (8 + 8));
  EXPECT_EQ(passes(plan_of(3, {0, 19, 6}), engine), kElements * 8);
}

}  // namespace
}  // namespace shardplan::host_update_test
