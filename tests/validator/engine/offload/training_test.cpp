// With states on the host, or in a file, the same training comes out.
#include <gtest/gtest.h>

#include <string>

#include "support/subprocess.h"
#include "validator/engine/offload/offload_testing.h"

namespace shardplan::validator::testing {
namespace {

std::vector<StepResult> offloaded(const NetworkSpec& spec, TestRun run, bool parameters,
                                  int steps) {
  run.options.offload = {.states = true, .parameters = parameters};
  return train(spec, run, steps);
}

/// With states in a file, too large for the buffers that are in memory.
std::vector<StepResult> swapped(const NetworkSpec& spec, TestRun run, bool parameters, int steps,
                                bool delayed = false) {
  const TemporaryFolder folder;
  run.options.offload = {
      .states = true, .on_nvme = true, .parameters = parameters, .delayed = delayed};
  run.storage.folder = folder.path("");
  run.storage.chunk_bytes = kStorageBlock;
  return train(spec, run, steps);
}

class Offload : public ::testing::TestWithParam<int> {};

TEST_P(Offload, gives_the_same_losses_to_the_bit) {
  const int stage = GetParam();
  const NetworkSpec specs[] = {tiny_gpt2(), tiny_llama(), tiny_qwen3(), tiny_qwen3_moe(),
                               MlpSpec{{7, 9, 6, 5}}};
  for (const NetworkSpec& spec : specs)
    for (const int world : {1, 2, 4}) {
      const TestRun run = run_of(kFp32, stage, world, 4 / world);
      const auto here = train(spec, run, 30);
      EXPECT_LT(here.back().loss, here.front().loss);
      const std::string what = "world " + std::to_string(world);
      expect_equal(here, offloaded(spec, run, false, 30), what);
      if (stage == 3) expect_equal(here, offloaded(spec, run, true, 30), what + ", parameters");
      if (world > 2) continue;
      const std::vector<StepResult> first(here.begin(), here.begin() + 12);
      expect_equal(first, swapped(spec, run, false, 12), what + ", on NVMe");
      if (stage == 3)
        expect_equal(first, swapped(spec, run, true, 12), what + ", parameters, on NVMe");
    }
}

TEST_P(Offload, gives_the_same_bits_in_every_precision) {
  for (const Kind& kind : kKinds) {
    const TestRun run = run_of(kind, GetParam(), 2, 2);
    const auto here = train(tiny_qwen3(), run, 20);
    expect_equal(here, offloaded(tiny_qwen3(), run, false, 20), kind.name);
    if (GetParam() == 3) expect_equal(here, offloaded(tiny_qwen3(), run, true, 20), kind.name);
    expect_equal(here, swapped(tiny_qwen3(), run, GetParam() == 3, 20), kind.name);
  }
}

TEST_P(Offload, of_units_of_several_buckets_gives_the_same_bits) {
  const MlpSpec wide{{64, 2100, 2100, 8}};  // of 2100 × 2104 elements: a bucket and some more
  for (const int world : {1, 2}) {
    const TestRun run = run_of(kFp32, GetParam(), world, 1);
    expect_equal(train(wide, run, 3), swapped(wide, run, false, 3), std::to_string(world));
  }
}

INSTANTIATE_TEST_SUITE_P(Zero, Offload, ::testing::Values(0, 1, 2, 3));

TEST(OffloadedFp16, skips_the_steps_that_overflow) {
  TestRun run = run_of(kKinds[3], 2, 2, 1);
  run.options.loss_scaling.initial = 0x1p24;
  run.options.loss_scaling.hysteresis = 1;
  const auto here = train(tiny_llama(), run, 30);
  EXPECT_TRUE(here.front().skipped);
  EXPECT_FALSE(here.back().skipped);
  expect_equal(here, offloaded(tiny_llama(), run, false, 30), "fp16");
}

/// What overflows is skipped: what was read for its update waits for the next one.
TEST(SwappedFp16, skips_the_steps_that_overflow) {
  TestRun run = run_of(kKinds[3], 2, 2, 1);
  run.options.loss_scaling.initial = 0x1p24;
  run.options.loss_scaling.hysteresis = 1;
  expect_equal(train(tiny_llama(), run, 30), swapped(tiny_llama(), run, false, 30), "fp16");
}

TEST(OffloadedParameters, are_those_of_the_last_step_when_a_run_is_finished) {
  std::vector<float> here, there;
  const auto parameters = [](bool offload, std::vector<float>& to) {
    TestRun run = run_of(kFp32, 2, 1, 1);
    run.options.offload.states = offload;
    with_trainers(tiny_llama(), run, [&](Trainer& trainer, BatchSource& batches) {
      for (int i = 0; i < 3; ++i) trainer.step(batches);
      trainer.finish();
      const Tensor x = trainer.weights().owned(1);
      to.assign(x.as<float>(), x.as<float>() + x.numel());
    });
  };
  parameters(false, here);
  parameters(true, there);
  EXPECT_EQ(here, there);
}

/// Of a delayed update the second step knows nothing: its loss is that of a step with the first
/// weights. What a step computes with is what the steps up to the one before the last made.
TEST(DelayedUpdate, comes_one_step_later) {
  const auto losses = [](double rate, bool delayed, int stage, bool parameters) {
    TestRun run = run_of(kFp32, stage, 2, 1);
    run.options.schedule = ConstantLr{rate};
    run.options.optimizer.weight_decay = 0;
    run.options.offload = {.states = true, .parameters = parameters, .delayed = delayed};
    return train(tiny_llama(), run, 40);
  };
  for (const int stage : {0, 1, 2, 3}) {
    const bool parameters = stage == 3;
    const auto still = losses(0, false, stage, parameters);
    const auto prompt = losses(3e-3, false, stage, parameters);
    const auto delayed = losses(3e-3, true, stage, parameters);
    EXPECT_EQ(delayed[0].loss, still[0].loss);
    EXPECT_EQ(delayed[1].loss, still[1].loss);
    EXPECT_NE(prompt[1].loss, still[1].loss);
    EXPECT_NE(delayed[2].loss, still[2].loss);
    EXPECT_LT(delayed.back().loss, 0.9 * delayed.front().loss);
  }
}

TEST(DelayedUpdate, of_states_on_nvme_gives_the_same_bits) {
  for (const int stage : {0, 1, 2, 3}) {
    TestRun run = run_of(kFp32, stage, 2, 1);
    const bool parameters = stage == 3;
    const auto there = swapped(tiny_llama(), run, parameters, 20, true);
    run.options.offload = {.states = true, .parameters = parameters, .delayed = true};
    expect_equal(train(tiny_llama(), run, 20), there, "stage " + std::to_string(stage));
  }
}

TEST(StatesOnNvme, that_cannot_be_kept_end_all_ranks) {
  TestRun run = run_of(kFp32, 2, 2, 1);
  run.options.offload = {.states = true, .on_nvme = true};
  run.storage.folder = "/nowhere";
  EXPECT_THROW(train(tiny_llama(), run, 1), StorageError);
}

}  // namespace
}  // namespace shardplan::validator::testing
