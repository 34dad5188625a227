// With what blocks keep on the host, the same training comes out.
#include <gtest/gtest.h>

#include <string>

#include "validator/engine/offload/offload_testing.h"

namespace shardplan::validator::testing {
namespace {

constexpr Keep kKeeps[] = {Keep::everything, Keep::products, Keep::inputs};

/// Copies on the way of `run` are as late as they may be.
void expect_same_bits(const NetworkSpec& spec, TestRun run, const std::string& what,
                      int steps = 4) {
  const auto here = train(spec, run, steps);
  EXPECT_NE(here.back().loss, here.front().loss) << what;
  run.keeps_on_host = true;
  expect_equal(here, train(spec, run, steps), what);
  run.late_copies = true;
  expect_equal(here, train(spec, run, steps), what + ", late");
}

std::string name_of(Keep keep, int stage, int world) {
  return "keep " + std::to_string(static_cast<int>(keep)) + ", stage " + std::to_string(stage) +
         ", world " + std::to_string(world);
}

class KeptOnHost : public ::testing::TestWithParam<int> {};

TEST_P(KeptOnHost, gives_the_same_losses_to_the_bit) {
  const NetworkSpec specs[] = {tiny_gpt2(), of_layers(tiny_llama(), 5), of_layers(tiny_qwen3(), 6),
                               of_layers(tiny_qwen3_moe(), 4)};
  for (const NetworkSpec& spec : specs)
    for (const Keep keep : kKeeps)
      for (const int world : {1, 2}) {
        TestRun run = run_of(kFp32, GetParam(), world, 4 / world);
        run.keep = keep;
        expect_same_bits(spec, run, name_of(keep, GetParam(), world));
      }
}

TEST_P(KeptOnHost, beside_states_on_the_host_gives_the_same_bits) {
  for (const Kind& kind : kKinds)
    for (const Keep keep : kKeeps)
      for (const bool delayed : {false, true}) {
        TestRun run = run_of(kind, GetParam(), 2, 2);
        run.keep = keep;
        run.options.offload = {.states = true, .parameters = GetParam() == 3, .delayed = delayed};
        expect_same_bits(of_layers(tiny_llama(), 5), run, name_of(keep, GetParam(), 2) + kind.name);
      }
}

TEST_P(KeptOnHost, of_any_number_of_blocks_gives_the_same_bits) {
  for (const std::int64_t layers : {1, 2, 3, 4, 7})
    for (const Keep keep : kKeeps) {
      TestRun run = run_of(kFp32, GetParam(), 1, 2);
      run.keep = keep;
      expect_same_bits(of_layers(tiny_llama(), layers), run,
                       name_of(keep, GetParam(), 1) + ", layers " + std::to_string(layers));
    }
}

TEST_P(KeptOnHost, of_divided_layers_sequences_and_experts_gives_the_same_bits) {
  for (const Keep keep : kKeeps) {
    TestRun run = run_of(kFp32, GetParam(), 4, 2);
    run.keep = keep;
    run.sequence = 8;
    const std::string what = name_of(keep, GetParam(), 4);
    run.tensor = run.context = 2;
    expect_same_bits(of_layers(tiny_llama(), 4), run, what + ", tensor and context");
    run.tensor = run.context = 1;
    run.experts = 2;
    expect_same_bits(of_layers(tiny_mixtral(), 4), run, what + ", experts");
  }
}

TEST_P(KeptOnHost, beside_adapters_gives_the_same_bits) {
  for (const BaseStore base : {BaseStore::values, BaseStore::nf4}) {
    DecoderSpec spec = of_layers(tiny_llama(), 4);
    spec.lora = {.rank = 3, .scale = 2, .targets = {"q_proj", "down_proj"}, .base = base};
    for (const Keep keep : kKeeps) {
      TestRun run = run_of(kFp32, GetParam(), 2, 2);
      run.keep = keep;
      expect_same_bits(spec, run, name_of(keep, GetParam(), 2));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zero, KeptOnHost, ::testing::Values(0, 1, 2, 3));

}  // namespace
}  // namespace shardplan::validator::testing
