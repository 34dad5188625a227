// With parameters in a file, the same training comes out.
#include <gtest/gtest.h>

#include <string>

#include "support/subprocess.h"
#include "validator/engine/offload/offload_testing.h"

namespace shardplan::validator::testing {
namespace {

std::vector<StepResult> on_nvme(const NetworkSpec& spec, TestRun run, bool states, int steps) {
  const TemporaryFolder folder;
  Offload& offload = run.options.offload;
  offload.states = offload.parameters = offload.parameters_on_nvme = true;
  offload.on_nvme = states;
  run.storage.folder = folder.path("");
  run.storage.chunk_bytes = kStorageBlock;
  return train(spec, run, steps);
}

/// With states on the host and on NVMe, and with copies that are as late as they may be.
void expect_same_on_nvme(const NetworkSpec& spec, TestRun run, const std::string& what, int steps) {
  const auto here = train(spec, run, steps);
  EXPECT_NE(here.back().loss, here.front().loss) << what;
  for (const bool states : {false, true}) {
    run.late_copies = states;
    expect_equal(here, on_nvme(spec, run, states, steps), what + (states ? ", states too" : ""));
  }
}

TEST(ParametersOnNvme, give_the_same_losses_to_the_bit) {
  const NetworkSpec specs[] = {tiny_gpt2(), of_layers(tiny_llama(), 5), of_layers(tiny_qwen3(), 1),
                               of_layers(tiny_qwen3_moe(), 4), MlpSpec{{7, 9, 6, 8, 5}}};
  for (const NetworkSpec& spec : specs)
    for (const int world : {1, 2})
      expect_same_on_nvme(spec, run_of(kFp32, 3, world, 4 / world),
                          "world " + std::to_string(world), 6);
}

TEST(ParametersOnNvme, give_the_same_bits_in_every_precision) {
  for (const Kind& kind : kKinds)
    for (const int world : {1, 4})
      expect_same_on_nvme(of_layers(tiny_llama(), 4), run_of(kind, 3, world, 2), kind.name, 4);
}

TEST(ParametersOnNvme, of_any_number_of_blocks_give_the_same_bits) {
  for (const Keep keep : {Keep::everything, Keep::products, Keep::inputs})
    for (const std::int64_t layers : {1, 2, 3, 7}) {
      TestRun run = run_of(kKinds[1], 3, 1, 2);
      run.keep = keep;
      run.keeps_on_host = layers > 2;
      expect_same_on_nvme(of_layers(tiny_qwen3(), layers), run, std::to_string(layers), 4);
    }
}

TEST(ParametersOnNvme, of_several_buckets_give_the_same_bits) {
  const MlpSpec wide{{64, 2100, 2100, 8}};  // of 2100 × 2104 elements: a bucket and some more
  expect_same_on_nvme(wide, run_of(kFp32, 3, 1, 1), "wide", 3);
}

TEST(ParametersOnNvme, with_what_is_frozen_give_the_same_bits) {
  for (const BaseStore base : {BaseStore::values, BaseStore::nf4, BaseStore::nf4_double})
    for (const int world : {1, 2})
      for (const Kind& kind : {kKinds[1], kKinds[2]})
        expect_same_on_nvme(adapted(of_layers(tiny_llama(), 4), {"q_proj", "down_proj"}, base),
                            run_of(kind, 3, world, 2), kind.name, 3);
}

TEST(ParametersOnNvme, of_shared_layers_and_sequences_give_the_same_bits) {
  TestRun run = run_of(kKinds[1], 3, 4, 2);
  run.sequence = 8;
  run.tensor = 2;
  expect_same_on_nvme(of_layers(tiny_llama(), 4), run, "tensor", 3);
  run.context = 2;
  expect_same_on_nvme(of_layers(tiny_llama(), 4), run, "tensor and context", 3);
}

TEST(ParametersOnNvme, skip_the_steps_that_overflow) {
  TestRun run = run_of(kKinds[3], 3, 1, 2);
  run.options.loss_scaling.initial = 0x1p24;
  run.options.loss_scaling.hysteresis = 1;
  const auto here = train(of_layers(tiny_llama(), 4), run, 30);
  EXPECT_TRUE(here.front().skipped);
  EXPECT_FALSE(here.back().skipped);
  expect_same_on_nvme(of_layers(tiny_llama(), 4), run, "fp16", 30);
}

TEST(ParametersOnNvme, of_delayed_updates_give_the_same_bits) {
  for (const Kind& kind : kKinds) {
    TestRun run = run_of(kind, 3, kind.master ? 1 : 2, 2);
    run.options.offload = {.states = true, .parameters = true, .delayed = true};
    expect_same_on_nvme(of_layers(tiny_llama(), 5), run, kind.name, 6);
  }
}

}  // namespace
}  // namespace shardplan::validator::testing
