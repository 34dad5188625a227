// Products in 8 bits of layers that ranks share: scales are of whole matrices, so that numbers are
// rounded as one rank rounds them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "validator/engine_testing.h"

namespace shardplan::validator::fp8_divided_test {
namespace {

using namespace testing;

/// Heads and widths that 2 and 4 ranks divide; grouped queries, head norms, biases.
std::vector<DecoderSpec> specs() {
  DecoderSpec gpt2 = tiny_gpt2(), llama = tiny_llama(), qwen3 = tiny_qwen3();
  gpt2.query_heads = gpt2.key_value_heads = 4;
  gpt2.head_dim = 4;
  llama.query_heads = qwen3.query_heads = 8;
  llama.key_value_heads = qwen3.key_value_heads = 4;
  qwen3.mlp_bias = qwen3.output_bias = true;
  return {gpt2, llama, qwen3};
}

TestRun run_of(DType dtype, Fp8Recipe fp8, int stage, int tensor, int data) {
  TestRun run{.micro_batch = 4, .sequence = 6, .world = tensor * data, .tensor = tensor};
  run.options.stage = stage;
  run.options.accumulation = 2 / data;
  run.options.dtype = dtype;
  run.options.optimizer.states = dtype == DType::f64 ? DType::f64 : DType::f32;
  if (dtype == DType::bf16) run.options.optimizer.master = DType::f32;
  run.options.schedule = ConstantLr{3e-3};
  run.fp8 = fp8;
  return run;
}

/// Of losses, and a tenth of that of the gradients' norms.
double largest_difference(const std::vector<StepResult>& one,
                          const std::vector<StepResult>& other) {
  EXPECT_EQ(one.size(), other.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i)
    largest = std::max({largest, std::abs(one[i].loss / other[i].loss - 1),
                        std::abs(one[i].gradient_norm / other[i].gradient_norm - 1) / 10});
  return largest;
}

class Fp8Divided : public ::testing::TestWithParam<Fp8Recipe> {};

/// In fp64 sums over ranks are those of one rank but for their last bits, and no number is near
/// enough to the middle between two codes for that to matter: what is left is the scales.
TEST_P(Fp8Divided, layers_round_as_one_rank_does_in_fp64) {
  for (const DecoderSpec& spec : specs()) {
    const auto one = train(spec, run_of(DType::f64, GetParam(), 0, 1, 1), 8);
    const auto plain = train(spec, run_of(DType::f64, Fp8Recipe::none, 0, 1, 1), 8);
    EXPECT_GT(largest_difference(one, plain), 1e-5) << "nothing is in 8 bits";
    for (const auto& [tensor, data, stage] : {std::tuple{2, 1, 0}, {4, 1, 0}, {2, 2, 1}, {2, 2, 3}})
      EXPECT_LT(largest_difference(
                    one, train(spec, run_of(DType::f64, GetParam(), stage, tensor, data), 8)),
                1e-9)
          << fmt::format("{}, tensor {}, data {}, stage {}", spec.family, tensor, data, stage);
  }
}

TEST_P(Fp8Divided, layers_change_nothing_when_blocks_are_done_again) {
  for (const DecoderSpec& spec : specs()) {
    TestRun run = run_of(DType::bf16, GetParam(), 1, 2, 2);
    const auto kept = train(spec, run, 5);
    for (const Keep keep : {Keep::products, Keep::inputs}) {
      run.keep = keep;
      EXPECT_EQ(largest_difference(kept, train(spec, run, 5)), 0) << spec.family;
    }
    run.keep = Keep::everything;
    run.keeps_on_host = true;
    EXPECT_EQ(largest_difference(kept, train(spec, run, 5)), 0) << spec.family << ", on the host";
  }
}

INSTANTIATE_TEST_SUITE_P(Recipes, Fp8Divided,
                         ::testing::Values(Fp8Recipe::tensorwise, Fp8Recipe::rowwise));

}  // namespace
}  // namespace shardplan::validator::fp8_divided_test
