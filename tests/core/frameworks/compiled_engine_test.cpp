// DeepSpeed's engine over a compiled model: up to stage 2 one graph, at stage 3 one of each module.
#include <gtest/gtest.h>

#include <set>

#include "lowering/gradient_uses.h"
#include "lowering/lower.h"
#include "lowering/tensors.h"
#include "simulator/memory.h"
#include "support/plan_testing.h"

namespace shardplan::compiled_engine_test {
namespace {

constexpr auto kConfig = R"({"model_type": "llama", "hidden_size": 512, "intermediate_size": 2048,
                             "num_attention_heads": 8, "num_hidden_layers": 8,
                             "vocab_size": 256, "tie_word_embeddings": false})";

Plan plan_of_stage(int stage, bool compiled) {
  Plan plan = zero_plan(stage, "bf16-master", 1);
  plan.framework.deepspeed.zero.reduce_bucket_size = 4'000'000;
  plan.workload.micro_batch = 1;
  plan.workload.sequence_length = 16;
  if (compiled) plan.compile = Compile{};
  return plan;
}

MemoryProfile memory_of(const Plan& plan) {
  const Model model = model_of(kConfig);
  return simulate_memory(lower(model, plan, run_segments(model, plan), 0));
}

// 16 tokens keep little: gradients make the backward pass's peak. Beside them are, uncompiled,
// two buckets and this rank's copy of all; compiled all gradients first, as they come at once.
TEST(CompiledEngine, AllGradientsAreThereBeforeStage2TakesOne) {
  const Model model = model_of(kConfig);
  const std::int64_t all = trainable_bytes(model, DType::bf16, DType::bf16);
  const MemoryProfile eager = memory_of(plan_of_stage(2, false));
  const MemoryProfile compiled = memory_of(plan_of_stage(2, true));
  const std::int64_t bucket = 2 * 4'000'000;
  EXPECT_GE(compiled.of(Phase::backward).peak, eager.of(Phase::backward).peak + all - 3 * bucket);
  EXPECT_EQ(compiled.of(Phase::backward).end, eager.of(Phase::backward).end);
}

TEST(CompiledEngine, EachStageLeavesWhatItLeavesUncompiled) {
  for (const int stage : {0, 1, 2, 3})
    for (const std::int64_t batches : {1, 3}) {
      Plan eager = plan_of_stage(stage, false), compiled = plan_of_stage(stage, true);
      eager.workload.gradient_accumulation = compiled.workload.gradient_accumulation = batches;
      const MemoryProfile a = memory_of(eager), b = memory_of(compiled);
      EXPECT_EQ(a.of(Phase::backward).end, b.of(Phase::backward).end) << stage << " " << batches;
      EXPECT_EQ(a.of(Phase::step).end, b.of(Phase::step).end) << stage << " " << batches;
    }
}

TEST(CompiledEngine, Stage3FetchesWhatItFetchesUncompiled) {
  const Model model = model_of(kConfig);
  const auto fetches = [&](bool compiled) {
    const ModelRun run = run_segments(model, plan_of_stage(3, compiled));
    std::set<std::int32_t> modules;
    for (const SegmentRun& segment : run.segments)
      for (const TapeEvent& e : segment.forward.forward)
        if (e.kind == TapeEvent::Kind::fetch) modules.insert(e.id);
    return modules;
  };
  EXPECT_EQ(fetches(true), fetches(false));
  EXPECT_FALSE(gradients_at_once(model, plan_of_stage(3, true)));
  EXPECT_TRUE(gradients_at_once(model, plan_of_stage(2, true)));
}

}  // namespace
}  // namespace shardplan::compiled_engine_test
