// However layers are divided among ranks, the same training comes out.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "support/subprocess.h"
#include "validator/engine_testing.h"
#include "validator/whole_gradients.h"

namespace shardplan::validator::tensor_parallel_test {
namespace {

using namespace testing;

/// Heads and widths that 2 and 4 ranks divide; grouped queries, head norms, biases, tied and not.
std::vector<DecoderSpec> specs() {
  DecoderSpec gpt2 = tiny_gpt2(), llama = tiny_llama(), qwen3 = tiny_qwen3();
  gpt2.query_heads = gpt2.key_value_heads = 4;
  gpt2.head_dim = 4;
  gpt2.vocabulary = 150;  // the last of two ranks has few tokens, of four none
  llama.query_heads = 8;
  llama.key_value_heads = 4;
  llama.vocabulary = 300;
  qwen3.query_heads = 8;
  qwen3.key_value_heads = 4;
  qwen3.mlp_bias = qwen3.output_bias = true;
  return {gpt2, llama, qwen3};
}

TestRun run_of(int stage, int tensor, int data, std::int64_t accumulation) {
  TestRun run{.micro_batch = 4, .sequence = 6, .world = tensor * data, .tensor = tensor};
  run.options.stage = stage;
  run.options.accumulation = accumulation;
  run.options.dtype = DType::f32;
  run.options.optimizer.largest_norm = 1;
  run.options.schedule = ConstantLr{3e-3};
  return run;
}

class TensorParallel : public ::testing::TestWithParam<int> {};

TEST_P(TensorParallel, gives_the_losses_of_one_rank_over_50_steps_in_fp32) {
  for (const DecoderSpec& spec : specs()) {
    const auto one = train(spec, run_of(0, 1, 1, 2), 50);
    EXPECT_LT(one.back().loss, 0.98 * one.front().loss);
    for (const auto& [tensor, data] : {std::pair{2, 1}, {4, 1}, {2, 2}})
      expect_alike(
          one, train(spec, run_of(GetParam(), tensor, data, 2 / data), 50), 1e-6,
          spec.family + ", tensor " + std::to_string(tensor) + ", data " + std::to_string(data));
  }
}

TEST_P(TensorParallel, gives_the_same_losses_when_blocks_are_done_again) {
  for (const Keep keep : {Keep::products, Keep::inputs}) {
    TestRun whole = run_of(0, 1, 1, 2), divided = run_of(GetParam(), 2, 2, 1);
    whole.keep = divided.keep = keep;
    expect_alike(train(specs()[2], whole, 20), train(specs()[2], divided, 20), 1e-6, "qwen3");
  }
}

/// Each rank counts in the norm what it does with its states on the GPU.
TEST_P(TensorParallel, gives_the_same_bits_with_states_on_the_host) {
  const TemporaryFolder folder;
  for (const DecoderSpec& spec : {specs()[0], specs()[2]})
    for (const auto& [tensor, data] : {std::pair{2, 1}, {2, 2}})
      for (const auto& master : {std::optional<DType>(), std::optional(DType::f32)}) {
        TestRun run = run_of(GetParam(), tensor, data, 2);
        run.options.optimizer.master = master;
        if (master) run.options.dtype = DType::bf16;
        const auto here = train(spec, run, 4);
        run.storage.folder = folder.path("");
        for (const bool on_nvme : {false, true}) {
          run.options.offload = {.states = true, .on_nvme = on_nvme, .parameters = GetParam() == 3};
          const auto there = train(spec, run, 4);
          ASSERT_EQ(here.size(), there.size());
          for (std::size_t i = 0; i < here.size(); ++i) {
            EXPECT_EQ(here[i].loss, there[i].loss) << spec.family << ", step " << i + 1;
            EXPECT_EQ(here[i].gradient_norm, there[i].gradient_norm)
                << spec.family << ", step " << i + 1;
          }
        }
      }
}

INSTANTIATE_TEST_SUITE_P(Zero, TensorParallel, ::testing::Values(0, 1, 2, 3));

Whole gradients_of(const DecoderSpec& spec, int tensor, double& loss) {
  TestRun run = run_of(0, tensor, 1, 1);
  run.options.dtype = run.options.optimizer.states = DType::f64;
  return whole_gradients(spec, run, loss);
}

TEST(TensorParallelGradients, are_those_of_the_undivided_network_in_fp64) {
  for (const DecoderSpec& spec : specs()) {
    double loss = 0, loss_divided = 0;
    const Whole one = gradients_of(spec, 1, loss);
    for (const int tensor : {2, 4}) {
      const Whole divided = gradients_of(spec, tensor, loss_divided);
      EXPECT_NEAR(loss, loss_divided, 1e-13);
      ASSERT_EQ(one.size(), divided.size());
      for (const auto& [name, whole] : one) {
        const std::vector<double>& parts = divided.at(name);
        ASSERT_EQ(whole.size(), parts.size()) << name;
        for (std::size_t i = 0; i < whole.size(); ++i) {
          if (std::isnan(whole[i]) && std::isnan(parts[i])) continue;  // padding
          ASSERT_NEAR(whole[i], parts[i], 1e-14) << spec.family << ' ' << name << ' ' << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardplan::validator::tensor_parallel_test
