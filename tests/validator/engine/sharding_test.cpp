// However states are divided among ranks, the same training comes out.
#include <gtest/gtest.h>

#include <cmath>

#include "validator/engine_testing.h"

namespace shardplan::validator::testing {
namespace {

TestRun run_of(int stage, int world, std::int64_t accumulation, DType dtype) {
  TestRun run{.world = world};
  run.options.stage = stage;
  run.options.dtype = dtype;
  run.options.accumulation = accumulation;
  run.options.optimizer.largest_norm = 1;
  run.options.schedule = ConstantLr{3e-3};
  if (dtype == DType::bf16 || dtype == DType::f16) run.options.optimizer.master = DType::f32;
  return run;
}

void expect_same_losses(const std::vector<StepResult>& a, const std::vector<StepResult>& b,
                        double tolerance, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i].loss, b[i].loss, tolerance * a[i].loss) << what << ", step " << i + 1;
}

class ShardedTraining : public ::testing::TestWithParam<int> {};

TEST_P(ShardedTraining, gives_the_losses_of_one_rank_over_50_steps_in_fp32) {
  const NetworkSpec specs[] = {tiny_gpt2(), tiny_llama(), tiny_qwen3(), MlpSpec{{7, 9, 6, 5}}};
  for (const NetworkSpec& spec : specs) {
    const auto one = train(spec, run_of(0, 1, 4, DType::f32), 50);
    EXPECT_LT(one.back().loss, 0.98 * one.front().loss);
    for (const int world : {1, 2, 4})
      expect_same_losses(one, train(spec, run_of(GetParam(), world, 4 / world, DType::f32), 50),
                         1e-6, "world " + std::to_string(world));
  }
}

TEST_P(ShardedTraining, gives_the_losses_of_one_rank_in_bf16_up_to_rounding) {
  const auto one = train(tiny_llama(), run_of(0, 1, 4, DType::bf16), 30);
  const auto many = train(tiny_llama(), run_of(GetParam(), 4, 1, DType::bf16), 30);
  expect_same_losses(one, many, 0.02, "bf16");
}

INSTANTIATE_TEST_SUITE_P(Zero, ShardedTraining, ::testing::Values(0, 1, 2, 3));

TEST(Stages, have_the_same_bits_with_the_same_ranks) {
  // Sums over ranks are taken in rank order whichever collective takes them, so that only the norm
  // that clips may differ; without clipping nothing does.
  TestRun run = run_of(0, 4, 2, DType::bf16);
  run.options.optimizer.largest_norm = 0;
  const auto whole = train(tiny_qwen3(), run, 20);
  run.options.stage = 1;
  const auto sharded = train(tiny_qwen3(), run, 20);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(whole[i].loss, sharded[i].loss);
}

TEST(PureBf16, learns_through_stochastic_rounding_what_nearest_rounding_would_lose) {
  TestRun run = run_of(2, 2, 1, DType::bf16);
  run.options.optimizer.master.reset();
  run.options.optimizer.states = DType::bf16;
  run.options.schedule = ConstantLr{1e-3};
  const auto results = train(tiny_llama(), run, 100);
  EXPECT_LT(results.back().loss, 0.8 * results.front().loss);
}

TEST(Fp16, begins_with_a_scale_that_overflows_and_finds_one_that_does_not) {
  TestRun run = run_of(1, 2, 1, DType::f16);
  run.options.loss_scaling.initial = 0x1p24;
  run.options.loss_scaling.hysteresis = 1;
  const auto results = train(tiny_llama(), run, 60);
  EXPECT_TRUE(results.front().skipped);
  EXPECT_FALSE(results.back().skipped);
  EXPECT_LT(results.back().loss_scale, 0x1p24);
  EXPECT_LT(results.back().loss, 0.9 * results.front().loss);
}

}  // namespace
}  // namespace shardplan::validator::testing
