// However sequences are divided among ranks, the same training comes out.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "validator/engine_testing.h"

namespace shardplan::validator::context_parallel_test {
namespace {

using namespace testing;

/// Learned positions and turned ones, grouped queries, head norms.
std::vector<DecoderSpec> specs() {
  DecoderSpec gpt2 = tiny_gpt2();
  gpt2.positions = 19;  // more than a sequence has
  return {gpt2, tiny_llama(), tiny_qwen3()};
}

TestRun run_of(int stage, int context, int data, std::int64_t accumulation) {
  TestRun run{.micro_batch = 2, .sequence = 16, .world = context * data, .context = context};
  run.options.stage = stage;
  run.options.accumulation = accumulation;
  run.options.dtype = DType::f32;
  run.options.optimizer.largest_norm = 1;
  run.options.schedule = ConstantLr{3e-3};
  return run;
}

/// Norms of 40 steps differ more than losses: by 1.5e-5 between one rank and two that have whole
/// samples each, for the network with head norms.
constexpr double kNorms = 3e-5;

void expect_losses(const std::vector<StepResult>& whole, const std::vector<StepResult>& divided,
                   double tolerance, const std::string& what) {
  ASSERT_EQ(whole.size(), divided.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(whole[i].loss, divided[i].loss, tolerance * whole[i].loss)
        << what << ", step " << i + 1;
    EXPECT_NEAR(whole[i].gradient_norm, divided[i].gradient_norm, kNorms * whole[i].gradient_norm)
        << what << ", step " << i + 1;
  }
}

class ContextParallel : public ::testing::TestWithParam<int> {};

TEST_P(ContextParallel, gives_the_losses_of_one_rank_over_50_steps_in_fp32) {
  for (const DecoderSpec& spec : specs()) {
    const auto one = train(spec, run_of(0, 1, 1, 2), 50);
    EXPECT_LT(one.back().loss, 0.98 * one.front().loss);
    for (const auto& [context, data] : {std::pair{2, 1}, {4, 1}, {2, 2}})
      expect_losses(
          one, train(spec, run_of(GetParam(), context, data, 2 / data), 50), 1e-6,
          spec.family + ", context " + std::to_string(context) + ", data " + std::to_string(data));
  }
}

TEST_P(ContextParallel, gives_the_same_losses_when_blocks_are_done_again) {
  for (const Keep keep : {Keep::products, Keep::inputs}) {
    TestRun whole = run_of(0, 1, 1, 2), divided = run_of(GetParam(), 2, 2, 1);
    whole.keep = divided.keep = keep;
    expect_losses(train(specs()[2], whole, 30), train(specs()[2], divided, 30), 1e-6, "qwen3");
  }
}

TEST_P(ContextParallel, gives_the_same_losses_with_states_on_the_host) {
  TestRun divided = run_of(GetParam(), 2, 2, 1), offloaded = divided;
  offloaded.options.offload = {.states = true, .parameters = GetParam() == 3};
  const auto on_device = train(specs()[1], divided, 10), on_host = train(specs()[1], offloaded, 10);
  for (std::size_t i = 0; i < on_device.size(); ++i)
    EXPECT_EQ(on_device[i].loss, on_host[i].loss) << "step " << i + 1;
}

INSTANTIATE_TEST_SUITE_P(Zero, ContextParallel, ::testing::Values(0, 1, 2, 3));

TEST(ContextParallelBeside, shared_layers_and_stages_gives_the_losses_of_one_rank) {
  TestRun whole = run_of(0, 1, 1, 2);
  DecoderSpec spec = specs()[1];
  const auto one = train(spec, whole, 30);
  TestRun shared = whole, staged = whole;
  shared.context = shared.tensor = 2;
  staged.context = staged.options.pipeline.stages = 2;
  shared.world = staged.world = 4;
  expect_losses(one, train(spec, shared, 30), 1e-6, "tensor 2");
  expect_losses(one, train(spec, staged, 30), 1e-6, "pipeline 2");
  spec = specs()[0];  // tied, learned positions
  expect_losses(train(spec, whole, 30), train(spec, shared, 30), 1e-6, "gpt2, tensor 2");
}

/// How far the losses of 30 steps in bf16 are from those in fp32, at most.
double farthest(const DecoderSpec& spec, TestRun run, const std::vector<StepResult>& exact) {
  run.options.dtype = DType::bf16;
  run.options.optimizer.master = DType::f32;
  const auto rounded = train(spec, run, 30);
  double most = 0;
  for (std::size_t i = 0; i < exact.size(); ++i)
    most = std::max(most, std::abs(rounded[i].loss - exact[i].loss) / exact[i].loss);
  return most;
}

TEST(ContextParallelInBf16, is_about_as_far_from_fp32_as_one_rank) {
  for (const DecoderSpec& spec : specs()) {
    const auto exact = train(spec, run_of(0, 1, 1, 2), 30);
    const double one = farthest(spec, run_of(0, 1, 1, 2), exact);
    for (const int context : {2, 4})
      EXPECT_LT(farthest(spec, run_of(1, context, 1, 2), exact), 2 * one)
          << spec.family << ", context " << context;
  }
}

/// Of all units, flat; the same on every rank. `keep` decides what the backward pass does again.
std::vector<std::vector<double>> gradients_of(const DecoderSpec& spec, int context, Keep keep,
                                              double& loss) {
  TestRun run = run_of(0, context, 1, 1);
  run.keep = keep;
  run.options.dtype = run.options.optimizer.states = DType::f64;
  std::vector<std::vector<double>> all;
  std::mutex mutex;
  with_trainers(spec, run, [&](Trainer& trainer, BatchSource& batches) {
    const double mine = trainer.gradients_of(batches);
    const std::lock_guard lock(mutex);
    loss = mine;
    std::vector<std::vector<double>> units;
    for (std::size_t u = 0; u < trainer.network().units().size(); ++u) {
      const double* g = trainer.gradients().owned(static_cast<int>(u)).as<double>();
      units.emplace_back(g, g + trainer.network().units()[u].numel);
    }
    if (all.empty()) all = units;
    EXPECT_EQ(all, units);
  });
  return all;
}

TEST(ContextParallelGradients, are_those_of_whole_sequences_in_fp64) {
  for (const DecoderSpec& spec : specs()) {
    double loss = 0, loss_divided = 0;
    const auto one = gradients_of(spec, 1, Keep::everything, loss);
    for (const Keep keep : {Keep::everything, Keep::products, Keep::inputs})
      for (const int context : {2, 4, 8}) {
        const auto divided = gradients_of(spec, context, keep, loss_divided);
        EXPECT_NEAR(loss, loss_divided, 1e-13);
        ASSERT_EQ(one.size(), divided.size());
        for (std::size_t u = 0; u < one.size(); ++u) {
          ASSERT_EQ(one[u].size(), divided[u].size());
          for (std::size_t i = 0; i < one[u].size(); ++i)
            ASSERT_NEAR(one[u][i], divided[u][i], 1e-14)
                << spec.family << ", context " << context << ", unit " << u << ", element " << i;
        }
      }
  }
}

TEST(ContextShare, divides_every_sequence_from_both_ends) {
  std::vector<int> seen(24);
  for (int rank = 0; rank < 3; ++rank) {
    const RowPlaces places = ContextShare{rank, 3}.places(24);
    ASSERT_EQ(places.sequence, 8);
    for (std::int64_t row = 0; row < 8; ++row) ++seen[static_cast<std::size_t>(places.of(row))];
    EXPECT_EQ(places.of(8), places.of(0)) << "the next sequence begins";
  }
  EXPECT_EQ(seen, std::vector<int>(24, 1));
  const RowPlaces middle = ContextShare{1, 3}.places(24);
  EXPECT_EQ(middle.of(0), 4);
  EXPECT_EQ(middle.of(3), 7);
  EXPECT_EQ(middle.of(4), 16);
  EXPECT_EQ(middle.of(7), 19);
}

}  // namespace
}  // namespace shardplan::validator::context_parallel_test
