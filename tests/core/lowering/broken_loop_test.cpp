// Layers that are compiled graphs of their own, as the loop over them breaks the model's graph.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "lowering/segments.h"
#include "support/plan_testing.h"

namespace shardplan::broken_loop_test {
namespace {

/// Bytes that OPT holds in a compiled step from its beginning to its end.
std::int64_t held(int layers, Checkpointing checkpointing) {
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.workload.micro_batch = 4;
  plan.workload.sequence_length = 1024;
  plan.checkpointing = checkpointing;
  plan.compile = Compile{};
  const Model model =
      model_of(fmt::format(R"({{"model_type": "opt", "hidden_size": 512, "ffn_dim": 1024,
                       "num_attention_heads": 8, "vocab_size": 1024, "word_embed_proj_dim": 512,
                       "num_hidden_layers": {}}})",
                           layers));
  return run_segments(model, plan).held_throughout;
}

// Four samples' masks of 1,024 by 1,024 in 16 bits.
TEST(BrokenLoop, EachLayerKeepsAMask) {
  EXPECT_EQ(held(3, Checkpointing::none) - held(2, Checkpointing::none), 4 * 1024 * 1024 * 2);
}

TEST(BrokenLoop, CheckpointsMakeItAgain) {
  EXPECT_EQ(held(3, Checkpointing::full), held(2, Checkpointing::full));
}

}  // namespace
}  // namespace shardplan::broken_loop_test
