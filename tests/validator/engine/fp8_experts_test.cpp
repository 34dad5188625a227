// Experts' products in 8 bits, beside the same network whose products are not rounded.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "validator/engine_testing.h"
#include "validator/whole_gradients.h"

namespace shardplan::validator::fp8_experts_test {
namespace {

using namespace testing;

/// Wide enough that rounding errors of single elements do not decide.
DecoderSpec wide(DecoderSpec s) {
  s.hidden = 64;
  s.inner = 96;
  s.head_dim = 16;
  s.init_stddev = 0.1F;
  return s;
}

TestRun run_of(DType dtype, Fp8Recipe fp8, int stage = 0, int world = 1, int experts = 1) {
  TestRun run{.micro_batch = 4, .sequence = 8, .world = world, .experts = experts};
  run.options.stage = stage;
  run.options.accumulation = 4 / world;
  run.options.dtype = dtype;
  run.options.optimizer.states = dtype == DType::f64 ? DType::f64 : DType::f32;
  if (dtype == DType::bf16) run.options.optimizer.master = DType::f32;
  run.options.schedule = ConstantLr{1e-3};
  run.fp8 = fp8;
  return run;
}

double largest_difference(const std::vector<StepResult>& one,
                          const std::vector<StepResult>& other) {
  EXPECT_EQ(one.size(), other.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i)
    largest = std::max(largest, std::abs(other[i].loss / one[i].loss - 1));
  return largest;
}

double distance(const Whole& one, const Whole& other) {
  double difference = 0, size = 0;
  for (const auto& [name, g] : one) {
    const std::vector<double>& h = other.at(name);
    for (std::size_t i = 0; i < g.size(); ++i) {
      if (std::isnan(g[i])) continue;  // padding
      difference += (g[i] - h[i]) * (g[i] - h[i]);
      size += g[i] * g[i];
    }
  }
  return std::sqrt(difference / size);
}

class Fp8Experts : public ::testing::TestWithParam<Fp8Recipe> {};

TEST_P(Fp8Experts, have_the_loss_curve_of_the_undivided_network_in_fp32) {
  for (const DecoderSpec& spec : {wide(tiny_mixtral()), wide(tiny_qwen3_moe())}) {
    TestRun run = run_of(DType::f32, Fp8Recipe::none);
    run.options.accumulation = 2;
    const auto plain = train(spec, run, 24);
    run.fp8 = GetParam();
    const auto narrow = train(spec, run, 24);
    EXPECT_NE(plain.front().loss, narrow.front().loss) << "nothing is in 8 bits";
    EXPECT_LT(narrow.back().loss, 0.9 * narrow.front().loss);
    EXPECT_LT(largest_difference(plain, narrow), 0.03) << spec.family;
  }
}

TEST_P(Fp8Experts, over_two_of_four_ranks_have_it_too) {
  const DecoderSpec spec = wide(tiny_mixtral());
  const auto plain = train(spec, run_of(DType::f32, Fp8Recipe::none), 24);
  EXPECT_LT(largest_difference(plain, train(spec, run_of(DType::f32, GetParam(), 1, 4, 2), 24)),
            0.03);
}

/// |g - h| / |g| of all gradients: what 8 bits do to a step in fp64.
double distance_of(const DecoderSpec& spec, Fp8Recipe fp8, int world = 1, int experts = 1) {
  double loss = 0, loss_narrow = 0;
  const Whole plain = whole_gradients(spec, run_of(DType::f64, Fp8Recipe::none), loss);
  const Whole narrow =
      whole_gradients(spec, run_of(DType::f64, fp8, 0, world, experts), loss_narrow);
  EXPECT_NE(loss, loss_narrow) << "nothing is in 8 bits";
  EXPECT_NEAR(loss, loss_narrow, 0.01 * loss);
  return distance(plain, narrow);
}

/// Where every row goes to every expert a layer rounds as one without experts does.
TEST_P(Fp8Experts, have_gradients_as_near_to_those_of_fp64_as_layers_without_experts) {
  const double dense = distance_of(wide(tiny_llama()), GetParam());
  DecoderSpec everywhere = wide(tiny_mixtral());
  everywhere.experts->per_token = everywhere.experts->count;
  for (const auto& [world, experts] : {std::pair{1, 1}, {2, 2}, {4, 2}})
    EXPECT_LT(distance_of(everywhere, GetParam(), world, experts), dense)
        << fmt::format("{} of {}", experts, world);
  // Where two experts are nearly as good as each other, rounding here and there takes the other.
  for (const DecoderSpec& spec : {wide(tiny_mixtral()), wide(tiny_qwen3_moe())})
    EXPECT_LT(distance_of(spec, GetParam(), 2, 2), 2 * dense) << spec.family;
}

TEST_P(Fp8Experts, do_not_change_with_the_stage) {
  for (const auto& [world, experts] : {std::pair{1, 1}, {2, 1}, {2, 2}, {4, 2}}) {
    const auto first = train(tiny_mixtral(), run_of(DType::f64, GetParam(), 0, world, experts), 10);
    for (const int stage : {1, 2, 3})
      EXPECT_LT(largest_difference(
                    first, train(tiny_mixtral(),
                                 run_of(DType::f64, GetParam(), stage, world, experts), 10)),
                1e-9)
          << fmt::format("stage {}, {} of {}", stage, experts, world);
  }
}

TEST_P(Fp8Experts, do_not_change_when_blocks_are_done_again) {
  for (const double capacity : {0.0, 1.25})
    for (const auto& [world, experts] : {std::pair{1, 1}, {2, 2}}) {
      TestRun run = run_of(DType::bf16, GetParam(), 1, world, experts);
      run.capacity_factor = capacity;
      const auto kept = train(tiny_qwen3_moe(), run, 8);
      for (const Keep keep : {Keep::products, Keep::inputs}) {
        run.keep = keep;
        EXPECT_EQ(largest_difference(kept, train(tiny_qwen3_moe(), run, 8)), 0);
      }
      run.keep = Keep::everything;
      run.keeps_on_host = true;
      EXPECT_EQ(largest_difference(kept, train(tiny_qwen3_moe(), run, 8)), 0) << "on the host";
    }
}

/// Slots that nobody has are rows of zeros: they change no scale and no sum.
TEST_P(Fp8Experts, with_more_room_than_they_need_are_as_without_a_limit) {
  TestRun run = run_of(DType::f64, GetParam());
  const auto given = train(tiny_mixtral(), run, 10);
  run.capacity_factor = 100;
  EXPECT_LT(largest_difference(given, train(tiny_mixtral(), run, 10)), 1e-9);
}

INSTANTIATE_TEST_SUITE_P(Recipes, Fp8Experts,
                         ::testing::Values(Fp8Recipe::tensorwise, Fp8Recipe::rowwise));

}  // namespace
}  // namespace shardplan::validator::fp8_experts_test
