// The native engine's states against the closed forms of the ZeRO paper.
#include <gtest/gtest.h>

#include "frameworks/native/layout.h"
#include "support/plan_testing.h"

namespace shardplan {
namespace {

// Every shard on up to 4 ranks is a multiple of 512 bytes and the vocabulary one of 128, so nothing
// is padded.
constexpr std::string_view kLlama = R"({"model_type": "llama", "hidden_size": 1024,
  "intermediate_size": 1024, "num_hidden_layers": 6, "num_attention_heads": 8, "vocab_size": 1280})";

Plan native_plan(std::int64_t stage, std::string_view precision, std::int64_t ranks) {
  Plan plan = plan_of(FrameworkKind::native, precision, ranks);
  plan.framework.native.zero_stage = stage;
  return plan;
}

TEST(NativeLowering, keeps_the_states_of_the_closed_forms) {
  const Model model = model_of(kLlama);
  const std::int64_t psi = model.parameter_count();
  for (const std::int64_t n : {1, 2, 4}) {
    const auto states = [&](std::int64_t stage) {
      return model_states(model, native_plan(stage, "bf16-master", n));
    };
    EXPECT_EQ(states(0), 16 * psi);
    EXPECT_EQ(states(1), 4 * psi + 12 * psi / n);
    EXPECT_EQ(states(2), 2 * psi + 14 * psi / n);
    EXPECT_EQ(states(3), 16 * psi / n);
    EXPECT_EQ(model_states(model, native_plan(3, "bf16-pure", n)), 8 * psi / n);
    EXPECT_EQ(model_states(model, native_plan(0, "fp32", n)), 16 * psi);
  }
}

TEST(NativeLowering, needs_room_for_the_units_that_are_gathered_and_reduced) {
  const Model model = model_of(kLlama);
  const NativeLayout layout = native_layout(model, Parallel{});
  // Two blocks, and the embedding or the larger head.
  const std::int64_t slots = 2 * (2 * layout.blocks[0].elements + layout.head.elements);
  const Estimate e = estimate(model, native_plan(3, "bf16-master", 4), Calibration{});
  EXPECT_EQ(resident(e, Category::gathered_parameters), slots);
  EXPECT_EQ(resident(e, Category::communication_buffers), slots);
  const Estimate two = estimate(model, native_plan(2, "bf16-master", 4), Calibration{});
  EXPECT_EQ(resident(two, Category::gathered_parameters), 0);
}

TEST(NativeLowering, sends_what_each_stage_sends) {
  const Model model = model_of(kLlama);
  const std::int64_t bytes = 2 * model.parameter_count();
  const auto payload = [&](std::int64_t stage, std::string_view what) {
    std::int64_t sum = 0;
    for (const TrafficLine& line :
         estimate(model, native_plan(stage, "bf16-master", 4), Calibration{}).traffic)
      if (line.what == what) sum += line.payload_bytes;
    return sum;
  };
  EXPECT_EQ(payload(0, "gradient all-reduce"), bytes);
  EXPECT_EQ(payload(1, "gradient reduce-scatter"), bytes);
  EXPECT_EQ(payload(1, "parameter all-gather"), bytes);
  EXPECT_EQ(payload(3, "gradient reduce-scatter"), bytes);
  // Once forward; backward without embedding, head and the two blocks that are still there.
  const NativeLayout layout = native_layout(model, Parallel{});
  EXPECT_EQ(payload(3, "parameter all-gather"), bytes + 2 * 4 * layout.blocks[0].elements);
}

TEST(NativeLowering, refuses_what_the_engine_does_not_run) {
  const Model model = model_of(R"({"model_type": "opt"})");
  EXPECT_THROW(estimate(model, native_plan(0, "bf16-master", 1), Calibration{}), InputError);
}

}  // namespace
}  // namespace shardplan
