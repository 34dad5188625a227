// Adapters of the experts' own matrices, of elements and of 4 bits, however ranks divide the
// experts.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "support/subprocess.h"
#include "validator/engine_testing.h"

namespace shardplan::validator::expert_adapters_test {
namespace {

using namespace testing;

/// Of both matrices beside attention's, and of one alone; the first with a base of 4 bits.
std::vector<DecoderSpec> specs() {
  const std::vector<std::string> both{"gate_up_proj", "down_proj"};
  return {with_experts(adapted(tiny_mixtral(), {"all-linear"}), both),
          with_experts(adapted(tiny_qwen3_moe(), {}), {"gate_up_proj"}),
          with_quantized_experts(
              with_experts(adapted(tiny_mixtral(), {"all-linear"}, BaseStore::nf4_double), both))};
}

/// Four micro-batches, whatever they are divided over: the balance of experts is of each.
TestRun run_of(int stage, int world, int experts, DType dtype = DType::f64) {
  TestRun run{.micro_batch = 2, .sequence = 6, .world = world, .experts = experts};
  run.options.stage = stage;
  run.options.accumulation = 4 / world;
  run.options.dtype = dtype;
  run.options.optimizer.states = dtype == DType::f64 ? DType::f64 : DType::f32;
  if (dtype == DType::bf16) run.options.optimizer.master = DType::f32;
  run.options.optimizer.largest_norm = 0.1;
  run.options.schedule = ConstantLr{1e-2};
  return run;
}

constexpr std::pair<int, int> kWorlds[] = {{2, 1}, {2, 2}, {4, 2}, {4, 4}};

class ExpertAdapters : public ::testing::TestWithParam<int> {};

TEST_P(ExpertAdapters, give_the_losses_and_norms_of_one_rank_over_30_steps_in_fp64) {
  for (const DecoderSpec& spec : specs()) {
    const auto one = train(spec, run_of(0, 1, 1), 30);
    TestRun frozen = run_of(0, 1, 1);
    frozen.options.schedule = ConstantLr{0};
    EXPECT_LT(one.back().loss, 0.99 * train(spec, frozen, 30).back().loss);
    for (const auto& [world, experts] : kWorlds)
      expect_alike(one, train(spec, run_of(GetParam(), world, experts), 30), 1e-11,
                   spec.family + ", " + std::to_string(experts) + " of " + std::to_string(world));
    for (const Keep keep : {Keep::products, Keep::inputs}) {
      TestRun run = run_of(GetParam(), 2, 2);
      run.keep = keep;
      expect_alike(one, train(spec, run, 30), 1e-11, spec.family + ", done again");
    }
  }
}

TEST_P(ExpertAdapters, drop_the_same_rows) {
  const DecoderSpec spec = specs().back();
  TestRun whole = run_of(0, 1, 1);
  whole.capacity_factor = 0.8;
  const auto one = train(spec, whole, 20);
  EXPECT_GT(one.front().dropped, 0);
  for (const auto& [world, experts] : kWorlds) {
    TestRun divided = run_of(GetParam(), world, experts);
    divided.capacity_factor = 0.8;
    expect_alike(one, train(spec, divided, 20), 1e-11, std::to_string(experts));
  }
}

TEST_P(ExpertAdapters, give_the_same_bits_with_states_on_the_host) {
  const TemporaryFolder folder;
  for (const DecoderSpec& spec : specs()) {
    TestRun run = run_of(GetParam(), 4, 2, DType::f32);
    const auto here = train(spec, run, 4);
    run.storage.folder = folder.path("");
    for (const bool on_nvme : {false, true}) {
      const bool parameters = GetParam() == 3;
      run.options.offload = {.states = true,
                             .on_nvme = on_nvme,
                             .parameters = parameters,
                             .parameters_on_nvme = parameters && on_nvme};
      expect_alike(here, train(spec, run, 4), 0, spec.family);
    }
  }
}

TEST_P(ExpertAdapters, learn_beside_experts_in_fp8) {
  DecoderSpec spec = specs()[GetParam() < 2 ? 0 : 2];
  spec.hidden = 64;
  spec.inner = 96;
  spec.head_dim = 16;
  spec.init_stddev = 0.1F;
  const auto curve = [&](Fp8Recipe fp8, int world, int experts) {
    TestRun run = run_of(GetParam(), world, experts, DType::bf16);
    run.micro_batch = 4;
    run.sequence = 8;
    run.options.schedule = ConstantLr{3e-3};
    run.fp8 = fp8;
    return train(spec, run, 30);
  };
  const auto plain = curve(Fp8Recipe::none, 2, 2);
  for (const Fp8Recipe fp8 : {Fp8Recipe::tensorwise, Fp8Recipe::rowwise}) {
    const auto narrow = curve(fp8, 2, 2);
    EXPECT_NE(plain.front().loss, narrow.front().loss) << "nothing is in 8 bits";
    EXPECT_LT(narrow.back().loss, 0.98 * narrow.front().loss);
    for (std::size_t i = 0; i < plain.size(); ++i)
      EXPECT_NEAR(narrow[i].loss, plain[i].loss, 0.03 * plain[i].loss) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Zero, ExpertAdapters, ::testing::Values(0, 1, 2, 3));

}  // namespace
}  // namespace shardplan::validator::expert_adapters_test
