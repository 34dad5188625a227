// CUDA graphs of a compiled step: what lies in their pool, and what PyTorch counts beside it.
#include "lowering/graph_pool.h"

#include <gtest/gtest.h>

#include "lowering/lower.h"
#include "simulator/memory.h"
#include "simulator/reserved.h"
#include "support/plan_testing.h"

namespace shardplan {
namespace {

constexpr auto kConfig = R"({"model_type": "llama", "hidden_size": 256, "intermediate_size": 1024,
                             "num_attention_heads": 4, "num_hidden_layers": 2,
                             "vocab_size": 4096})";

Program program_in(CompileMode mode) {
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.workload.micro_batch = 2;
  plan.workload.sequence_length = 512;
  plan.compile = Compile{.mode = mode};
  const Model model = model_of(kConfig);
  return lower(model, plan, run_segments(model, plan), 0);
}

/// Adapters over frozen embeddings, every block checkpointed.
Program adapted_program() {
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.workload.micro_batch = 2;
  plan.workload.sequence_length = 512;
  plan.workload.lora = Lora{16, {"q_proj", "v_proj"}, Quantization::none, {}};
  plan.checkpointing = Checkpointing::full;
  plan.compile = Compile{.mode = CompileMode::reduce_overhead};
  const Model model = model_of(kConfig, {.lora = plan.workload.lora});
  return lower(model, plan, run_segments(model, plan), 0);
}

std::int64_t end_of(const MemoryProfile& memory, Phase phase) {
  return memory.of(phase).end;
}

TEST(GraphPool, HoldsWhatBothPassesAllocate) {
  const MemoryProfile usual = simulate_memory(program_in(CompileMode::usual));
  const Program replayed = program_in(CompileMode::reduce_overhead);
  EXPECT_TRUE(replayed.replays_graphs);
  // The same tensors, a cuBLAS workspace and a copy of the logits' zeros more.
  const MemoryProfile all = simulate_memory(replayed);
  EXPECT_GE(all.peak, usual.peak);
  EXPECT_EQ(all.of(Phase::backward).end - all.of(Phase::step).end,
            usual.of(Phase::backward).end - usual.of(Phase::step).end);
  // Nothing is left of the passes where PyTorch counts, gradients least of all.
  const MemoryProfile counted = simulate_memory(without_graph_pool(replayed));
  EXPECT_EQ(end_of(counted, Phase::forward), end_of(counted, Phase::step));
  EXPECT_EQ(end_of(counted, Phase::backward), end_of(counted, Phase::step));
  EXPECT_LT(counted.peak, usual.peak);
}

TEST(GraphPool, LeavesTheOptimizerNoneOfItsMemory) {
  const Program usual = program_in(CompileMode::usual);
  const Program replayed = program_in(CompileMode::reduce_overhead);
  const std::int64_t shared = simulate_reserved(usual, {}).reserved;
  const std::int64_t apart = simulate_reserved(replayed, {}).reserved;
  // What is made for autograd beside the graphs is cached in the other pool.
  const std::int64_t zeros = 2 * 512 * 4096 * 2;
  EXPECT_GE(apart, shared + zeros);
}

TEST(GraphPool, HoldsTheEmbeddingsResultOverBesideIt) {
  const Program program = adapted_program();
  const std::int64_t embedded = 2 * 512 * 256 * 2;  // B·S·h in bf16
  const MemoryProfile counted = simulate_memory(without_graph_pool(program));
  // This step's is there before the last one's goes.
  EXPECT_EQ(counted.of(Phase::forward).peak - end_of(counted, Phase::step), embedded);
  // Zeros for the gradient of the logits as the graph returns them: 2TV.
  const std::int64_t zeros = 2 * 512 * 4096 * 2;
  const std::int64_t added = counted.of(Phase::backward).peak - end_of(counted, Phase::forward);
  EXPECT_GE(added, zeros);
  EXPECT_LT(added, 2 * zeros);
}

}  // namespace
}  // namespace shardplan
