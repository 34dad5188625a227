// The memory timeline against the simulator's peaks, and a program written by hand.
#include <gtest/gtest.h>

#include "estimate/ranks.h"
#include "simulator/timeline.h"
#include "support/plan_testing.h"

namespace shardplan {
namespace {

Model small_llama() {
  return model_of(R"({"model_type": "llama", "vocab_size": 1000, "hidden_size": 256,
                      "intermediate_size": 512, "num_hidden_layers": 6, "num_attention_heads": 4})");
}

TEST(MemoryTimeline, HasATurnForEachRiseAndFall) {
  Program program;
  ProgramBuilder b(program);
  b.resident(Category::parameters, 100);
  b.begin_phase(Phase::forward);
  b.begin_repeat(3);
  b.transient(Category::workspace, 50);
  b.alloc(Category::activations, 10);
  b.end_repeat();
  b.end_phase(Phase::forward);
  const MemoryTimeline t = memory_timeline(program);
  EXPECT_EQ(t.points.front().total, 100);
  EXPECT_EQ(t.points.back().total, 130);
  EXPECT_EQ(t.points[t.peak].total, 170);
  EXPECT_EQ(t.points[t.peak].iteration, 2);
  EXPECT_EQ(t.points[t.peak].iterations, 3);
  EXPECT_EQ(t.points[t.peak].live[index_of(Category::workspace)], 50);
}

TEST(MemoryTimeline, BeginsInTheFirstPhaseThatIsRun) {
  Program program;
  program.events.push_back({.kind = Event::Kind::begin_phase, .phase = Phase::prefill});
  program.events.push_back({.kind = Event::Kind::end_phase, .phase = Phase::prefill});
  for (const TimelinePoint& p : memory_timeline(program).points) EXPECT_EQ(p.phase, Phase::prefill);
}

TEST(MemoryTimeline, ShowsTheFirstAndTheLastMicroBatch) {
  Program program;
  ProgramBuilder b(program);
  b.begin_repeat(8);
  b.begin_phase(Phase::forward);
  b.alloc(Category::gradients, 10);
  b.end_phase(Phase::forward);
  b.end_repeat();
  const MemoryTimeline t = memory_timeline(program);
  EXPECT_EQ(t.micro_batches, 8);
  EXPECT_EQ(t.points.back().total, 80);
  for (const TimelinePoint& p : t.points) EXPECT_TRUE(p.micro_batch == 0 || p.micro_batch == 7);
}

TEST(MemoryTimeline, CountsTheMicroBatchesOfAStep) {
  const Model model = small_llama();
  for (const std::int64_t accumulation : {1, 2, 3, 4, 64}) {
    Plan plan = zero_plan(2, "bf16-master", 4);
    plan.workload.gradient_accumulation = accumulation;
    const MemoryTimeline t = memory_timeline(worst_program(model, plan));
    EXPECT_EQ(t.micro_batches, accumulation);
    EXPECT_EQ(t.points.back().micro_batch, accumulation - 1);
  }
}

TEST(MemoryTimeline, PeaksWhereTheSimulatorDoes) {
  const Model model = small_llama();
  for (const int stage : {0, 1, 2, 3}) {
    for (const std::int64_t accumulation : {1, 4}) {
      Plan plan = zero_plan(stage, "bf16-master", 4);
      plan.workload.gradient_accumulation = accumulation;
      plan.checkpointing = stage == 3 ? Checkpointing::full : Checkpointing::none;
      const Program program = worst_program(model, plan);
      const MemoryProfile profile = simulate_memory(program);
      const MemoryTimeline t = memory_timeline(program);
      EXPECT_EQ(t.points[t.peak].total, profile.peak) << stage;
      EXPECT_EQ(t.points[t.peak].live, profile.at_peak) << stage;
      EXPECT_EQ(t.points.front().live, profile.at_start) << stage;
      EXPECT_EQ(t.points.back().live, profile.at_start) << stage;
      EXPECT_EQ(t.points.back().total, profile.of(Phase::step).end) << stage;
    }
  }
}

}  // namespace
}  // namespace shardplan
