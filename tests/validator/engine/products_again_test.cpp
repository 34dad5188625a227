// Some products of each block are done again and the others are kept: the same training, to the
// bit.
#include <gtest/gtest.h>

#include <string>

#include "validator/engine_testing.h"

namespace shardplan::validator::products_again_test {
namespace {

using namespace testing;

/// Of qkv, out, up and down: all, the second and the last, the third, the last.
constexpr std::int64_t kEach[] = {1, 2, 3, 4};

TestRun run_of(int stage, int world) {
  TestRun run{.micro_batch = 2, .sequence = 8, .world = world};
  run.options.stage = stage;
  run.options.accumulation = 2;
  run.options.optimizer.largest_norm = 1;
  run.options.schedule = ConstantLr{3e-3};
  return run;
}

void expect_same_bits(const NetworkSpec& spec, TestRun run, const std::string& what) {
  const auto none = train(spec, run, 5);
  EXPECT_NE(none.back().loss, none.front().loss) << what;
  run.keep = Keep::products;
  for (const std::int64_t every : kEach) {
    run.products_again.every = every;
    const auto some = train(spec, run, 5);
    ASSERT_EQ(some.size(), none.size());
    for (std::size_t i = 0; i < none.size(); ++i) {
      EXPECT_EQ(some[i].loss, none[i].loss) << what << ", each " << every << ", step " << i + 1;
      EXPECT_EQ(some[i].gradient_norm, none[i].gradient_norm)
          << what << ", each " << every << ", step " << i + 1;
    }
  }
}

class ProductsAgain : public ::testing::TestWithParam<int> {};

TEST_P(ProductsAgain, give_the_losses_of_none_to_the_bit) {
  for (DecoderSpec spec : {tiny_gpt2(), tiny_llama(), tiny_qwen3(), tiny_mixtral()}) {
    spec.layers = 3;
    expect_same_bits(spec, run_of(GetParam(), 2), spec.family);
  }
  TestRun run = run_of(GetParam(), 2);
  run.options.dtype = DType::bf16;
  expect_same_bits(tiny_qwen3_moe(), run, "bf16");
}

TEST_P(ProductsAgain, of_divided_layers_sequences_and_experts_give_the_same_bits) {
  TestRun run = run_of(GetParam(), 4);
  run.tensor = run.context = 2;
  expect_same_bits(tiny_llama(), run, "tensor and context");
  run.tensor = run.context = 1;
  run.experts = 2;
  expect_same_bits(tiny_mixtral(), run, "experts");
  run.capacity_factor = 1;
  expect_same_bits(tiny_qwen3_moe(), run, "experts with a capacity");
}

TEST_P(ProductsAgain, beside_adapters_and_4_bits_give_the_same_bits) {
  for (const BaseStore base : {BaseStore::values, BaseStore::nf4}) {
    expect_same_bits(adapted(tiny_qwen3(), {"all-linear"}, base), run_of(GetParam(), 2),
                     "adapters");
    expect_same_bits(adapted(tiny_llama(), {"q_proj", "v_proj"}, base), run_of(GetParam(), 2),
                     "adapters of q and v");
  }
  expect_same_bits(with_experts(adapted(tiny_mixtral(), {"q_proj"}), {"experts.gate_up_proj"}),
                   run_of(GetParam(), 2), "adapters of experts");
}

TEST_P(ProductsAgain, in_fp8_give_the_same_bits) {
  for (const Fp8Recipe fp8 : {Fp8Recipe::tensorwise, Fp8Recipe::rowwise}) {
    DecoderSpec spec = tiny_llama();
    spec.inner = 32;
    TestRun run = run_of(GetParam(), 2);
    run.options.dtype = DType::bf16;
    run.fp8 = fp8;
    expect_same_bits(spec, run, "fp8");
  }
}

TEST_P(ProductsAgain, beside_states_and_kept_tensors_on_the_host_give_the_same_bits) {
  for (DecoderSpec spec : {tiny_qwen3(), tiny_mixtral()}) {
    spec.layers = 5;
    TestRun run = run_of(GetParam(), 2);
    run.options.offload = {.states = true, .parameters = GetParam() == 3};
    expect_same_bits(spec, run, "states on the host");
    run.keeps_on_host = run.late_copies = true;
    expect_same_bits(spec, run, "states and what blocks keep on the host");
  }
}

INSTANTIATE_TEST_SUITE_P(Zero, ProductsAgain, ::testing::Values(0, 1, 2, 3));

class ProductsAgainOfStages : public ::testing::TestWithParam<int> {};

TEST_P(ProductsAgainOfStages, give_the_same_bits) {
  using Order = PipelineSchedule;
  TestRun run = run_of(GetParam(), 4);
  run.options.accumulation = 4;
  DecoderSpec spec = tiny_llama();
  spec.layers = 4;
  run.options.pipeline = {.stages = 2, .chunks = 1, .order = Order::one_f_one_b};
  expect_same_bits(spec, run, "1f1b");
  run.options.pipeline = {.stages = 2, .chunks = 2, .order = Order::interleaved};
  expect_same_bits(spec, run, "interleaved");
  run.tensor = 2;
  expect_same_bits(spec, run, "interleaved, tensor 2");
}

INSTANTIATE_TEST_SUITE_P(Zero, ProductsAgainOfStages, ::testing::Values(0, 1));

}  // namespace
}  // namespace shardplan::validator::products_again_test
