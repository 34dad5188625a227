// What Dynamo checks of adapters before it calls a compiled graph.
#include <gtest/gtest.h>

#include <algorithm>

#include "lowering/segments.h"
#include "support/plan_testing.h"

namespace shardplan::guards_test {
namespace {

constexpr int kLayers = 3;

/// By segment, the adapters that are checked in its forward pass.
std::vector<std::int32_t> checked(const std::string& config) {
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.workload.lora = Lora{.rank = 8, .targets = {"q_proj", "v_proj"}};
  plan.compile = Compile{};
  const Model model = model_of(config, {.lora = plan.workload.lora});
  std::vector<std::int32_t> counts;
  for (const SegmentRun& s : run_segments(model, plan).segments) {
    std::int32_t count = 0;
    for (const Kernel& k : s.forward.forward_kernels)
      if (k.issue == Issue::guard) count += k.calls;
    counts.push_back(count);
  }
  return counts;
}

// A frame's guards come together, before any of its kernels.
TEST(Guards, OfAModelInOnePieceStandInFront) {
  EXPECT_EQ(checked(R"({"model_type": "llama", "hidden_size": 512, "intermediate_size": 1024,
                        "num_attention_heads": 8, "num_hidden_layers": 3, "vocab_size": 1024})"),
            (std::vector<std::int32_t>{2 * kLayers, 0, 0}));
}

// OPT's layers are frames of their own: each has its own.
TEST(Guards, OfLayersStandInThem) {
  EXPECT_EQ(checked(R"({"model_type": "opt", "hidden_size": 512, "ffn_dim": 1024,
                        "num_attention_heads": 8, "num_hidden_layers": 3, "vocab_size": 1024,
                        "word_embed_proj_dim": 512})"),
            (std::vector<std::int32_t>{0, 2, 0}));
}

}  // namespace
}  // namespace shardplan::guards_test
