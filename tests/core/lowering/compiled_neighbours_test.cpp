// What compiled blocks keep by what stands in front of them, and what they share.
#include <gtest/gtest.h>

#include <algorithm>

#include "lowering/lower.h"
#include "simulator/memory.h"
#include "support/plan_testing.h"
#include "trainers/description.h"

namespace shardplan::compiled_neighbours_test {
namespace {

constexpr std::int64_t kHidden = 256, kTokens = 1024, kHeads = 4, kBlocks = 6;

constexpr auto kLlama = R"({"model_type": "llama", "hidden_size": 256, "intermediate_size": 1024,
                            "num_attention_heads": 4, "num_hidden_layers": 6,
                            "vocab_size": 4096})";

Plan compiled_plan() {
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.workload.micro_batch = 2;
  plan.workload.sequence_length = kTokens / 2;
  plan.compile = Compile{};
  return plan;
}

std::int64_t left_by(const TapeRun& tape) {
  std::int64_t left = 0;
  for (const TapeEvent& e : tape.forward) {
    if (e.kind == TapeEvent::Kind::alloc) left += e.bytes;
    if (e.kind == TapeEvent::Kind::free) left -= e.bytes;
  }
  return left;
}

/// Of each three blocks one is computed again, and with it what the next one is given.
TEST(CompiledNeighbours, KeepNoInputBehindAComputedBlock) {
  Plan plan = compiled_plan();
  plan.checkpointing = Checkpointing::blocks;
  plan.checkpoint_share = {.every = 3};
  const Model model = model_of(kLlama);
  const ModelRun run = run_segments(model, plan);
  const auto blocks = std::ranges::find_if(
      run.segments, [](const SegmentRun& s) { return s.segment->checkpointable; });
  ASSERT_TRUE(blocks->others && blocks->behind);
  EXPECT_EQ(left_by(blocks->others->forward) - left_by(blocks->behind->forward),
            kTokens * kHidden * 2);
  // Three kinds of blocks in turn leave nothing behind.
  const MemoryProfile memory = simulate_memory(lower(model, plan, run, 0));
  EXPECT_LT(memory.of(Phase::step).end, memory.of(Phase::forward).end);
  const auto stretches = detail::stretches(run, *blocks, 0, kBlocks);
  const auto of = [&](const LayerTapes* tapes) {
    std::int64_t count = 0;
    for (const detail::Stretch& s : stretches) count += s.tapes == tapes ? s.count : 0;
    return count;
  };
  EXPECT_EQ(of(&*blocks), 2);
  // Counted from the last of each three, as a loop of one's own does: the first block of all has
  // none in front.
  EXPECT_EQ(of(&*blocks->behind), 1);
  EXPECT_EQ(of(&*blocks->others), 3);
}

/// ALiBi as a mask for every head: made once, in the operands' type, and there until the first
/// block's backward pass is over.
TEST(CompiledNeighbours, ShareAMaskBetweenThePasses) {
  constexpr auto kFalcon = R"({"model_type": "falcon", "hidden_size": 256,
                               "num_attention_heads": 4, "num_hidden_layers": 2, "alibi": true,
                               "multi_query": false, "parallel_attn": false, "bias": true,
                               "vocab_size": 4096})";
  for (const char* precision : {"bf16-pure", "bf16-autocast"}) {
    Plan plan = compiled_plan();
    plan.precision = plan_of(FrameworkKind::single, precision, 1).precision;
    const Model model = model_of(kFalcon);
    const ModelRun run = run_segments(model, plan);
    std::int64_t masks = 0;
    for (std::size_t i = 0; i < model.shared.size(); ++i)
      if (model.shared[i].name == "alibi_mask" && run.shared_kept[i]) masks += run.shared_bytes[i];
    EXPECT_EQ(masks, kTokens * (kTokens / 2) * kHeads * 2) << precision;
  }
}

/// BLOOM's activation is a function of autograd: a checkpoint in a graph leaves its result.
TEST(CompiledNeighbours, KeepWhatAFunctionOfAutogradMakes) {
  constexpr auto kBloom = R"({"model_type": "bloom", "n_embed": 256, "n_layer": 2, "n_head": 4,
                              "vocab_size": 4096})";
  Plan plan = compiled_plan();
  plan.checkpointing = Checkpointing::full;
  const Model model = model_of(kBloom);
  const ModelRun run = run_segments(model, plan);
  const auto blocks = std::ranges::find_if(
      run.segments, [](const SegmentRun& s) { return s.segment->checkpointable; });
  const std::int64_t kept = left_by(blocks->forward) - blocks->forward.output_bytes;
  EXPECT_EQ(kept, kTokens * 4 * kHidden * 2);
}

}  // namespace
}  // namespace shardplan::compiled_neighbours_test
