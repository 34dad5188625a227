// However the experts of a layer are divided among ranks, the same training comes out.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "support/subprocess.h"
#include "validator/engine_testing.h"
#include "validator/whole_gradients.h"

namespace shardplan::validator::experts_test {
namespace {

using namespace testing;

/// Four micro-batches, whatever they are divided over: the balance of experts is of each.
TestRun run_of(int stage, int world, int experts, DType dtype = DType::f32) {
  TestRun run{.micro_batch = 2, .sequence = 6, .world = world, .experts = experts};
  run.options.stage = stage;
  run.options.accumulation = 4 / world;
  run.options.dtype = dtype;
  if (dtype == DType::f64) run.options.optimizer.states = dtype;
  run.options.optimizer.largest_norm = 1;
  run.options.schedule = ConstantLr{3e-3};
  return run;
}

constexpr std::pair<int, int> kWorlds[] = {{2, 1}, {2, 2}, {4, 2}, {4, 4}};

class DividedExperts : public ::testing::TestWithParam<int> {};

TEST_P(DividedExperts, give_the_losses_of_one_rank_over_50_steps_in_fp32) {
  const auto one = train(tiny_mixtral(), run_of(0, 1, 1), 50);
  EXPECT_LT(one.back().loss, 0.95 * one.front().loss);
  EXPECT_EQ(one.back().dropped, 0);
  for (const auto& [world, experts] : kWorlds)
    expect_alike(one, train(tiny_mixtral(), run_of(GetParam(), world, experts), 50), 1e-6,
                 std::to_string(experts) + " of " + std::to_string(world));
}

/// In fp32 rounding decides here and there between two experts that are as good as each other.
TEST_P(DividedExperts, give_the_losses_of_one_rank_over_50_steps_in_fp64) {
  for (const DecoderSpec& spec : {tiny_mixtral(), tiny_qwen3_moe()}) {
    const auto one = train(spec, run_of(0, 1, 1, DType::f64), 50);
    EXPECT_LT(one.back().loss, 0.95 * one.front().loss);
    for (const auto& [world, experts] : kWorlds)
      expect_alike(one, train(spec, run_of(GetParam(), world, experts, DType::f64), 50), 1e-11,
                   spec.family + ", " + std::to_string(experts) + " of " + std::to_string(world));
  }
}

TEST_P(DividedExperts, give_the_same_losses_when_blocks_are_done_again) {
  for (const Keep keep : {Keep::products, Keep::inputs}) {
    TestRun whole = run_of(0, 1, 1, DType::f64), divided = run_of(GetParam(), 4, 2, DType::f64);
    whole.keep = divided.keep = keep;
    expect_alike(train(tiny_qwen3_moe(), whole, 20), train(tiny_qwen3_moe(), divided, 20), 1e-11,
                 "4");
  }
}

/// Of a layer, whatever is kept for the backward pass: what is done again is not counted again.
TEST(Experts, are_counted_where_they_get_no_row) {
  for (const Keep keep : {Keep::everything, Keep::products, Keep::inputs}) {
    TestRun run = run_of(0, 1, 1, DType::f64);
    run.keep = keep;
    run.micro_batch = 1;
    run.sequence = 1;  // one token a micro-batch goes to `per_token` experts
    const DecoderSpec spec = tiny_qwen3_moe();
    const auto steps = train(spec, run, 2);
    EXPECT_EQ(steps.back().idle_experts, spec.experts->count - spec.experts->per_token);
    run.capacity_factor = 1;
    EXPECT_EQ(train(spec, run, 2).back().idle_experts, 0);
  }
}

/// Room is of a micro-batch's rows, so that the same rows are dropped wherever the expert is.
TEST_P(DividedExperts, drop_the_same_rows) {
  TestRun whole = run_of(0, 1, 1);
  whole.capacity_factor = 0.8;
  const auto one = train(tiny_mixtral(), whole, 30);
  EXPECT_GT(one.front().dropped, 0);
  EXPECT_LT(one.back().loss, one.front().loss);
  for (const auto& [world, experts] : kWorlds) {
    TestRun divided = run_of(GetParam(), world, experts);
    divided.capacity_factor = 0.8;
    expect_alike(one, train(tiny_mixtral(), divided, 30), 1e-6, std::to_string(experts));
  }
}

TEST_P(DividedExperts, give_the_same_bits_with_states_on_the_host) {
  const TemporaryFolder folder;
  for (const auto& [world, experts] : {std::pair{2, 2}, {4, 2}}) {
    TestRun run = run_of(GetParam(), world, experts);
    const auto here = train(tiny_qwen3_moe(), run, 4);
    run.storage.folder = folder.path("");
    for (const bool on_nvme : {false, true}) {
      const bool parameters = GetParam() == 3;
      run.options.offload = {.states = true,
                             .on_nvme = on_nvme,
                             .parameters = parameters,
                             .parameters_on_nvme = parameters && on_nvme};
      expect_alike(here, train(tiny_qwen3_moe(), run, 4), 0, std::to_string(experts));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zero, DividedExperts, ::testing::Values(0, 1, 2, 3));

TEST(Capacity, of_every_row_is_as_none_at_all) {
  TestRun with = run_of(0, 1, 1);
  with.capacity_factor = 100;  // more than there are rows
  const auto all = train(tiny_mixtral(), run_of(0, 1, 1), 10),
             roomy = train(tiny_mixtral(), with, 10);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_NEAR(all[i].loss, roomy[i].loss, 1e-6);
    EXPECT_EQ(roomy[i].dropped, 0);
  }
}

TEST(Capacity, is_a_share_of_the_rows_rounded_up) {
  const ExpertsSpec experts{.count = 8, .per_token = 2};
  DecoderRun run{.micro_batch = 3, .sequence = 7};  // 21 rows, 42 assignments, 5.25 each
  EXPECT_EQ(expert_capacity(experts, run), 0);
  run.experts = {0, 4};
  EXPECT_EQ(expert_capacity(experts, run), 21);
  run.capacity_factor = 1;
  EXPECT_EQ(expert_capacity(experts, run), 6);
  run.capacity_factor = 2;
  EXPECT_EQ(expert_capacity(experts, run), 11);
  run.capacity_factor = 50;
  EXPECT_EQ(expert_capacity(experts, run), 21);
  run.capacity_factor = 1e-3;
  EXPECT_EQ(expert_capacity(experts, run), 1);
  run.fp8 = Fp8Recipe::rowwise;  // and up to what products in 8 bits want
  EXPECT_EQ(expert_capacity(experts, run), 16);
  run.capacity_factor = 50;
  EXPECT_EQ(expert_capacity(experts, run), 32);
}

Whole gradients_of(const DecoderSpec& spec, int world, int experts, double& loss) {
  return whole_gradients(spec, run_of(0, world, experts, DType::f64), loss);
}

TEST(DividedExpertGradients, are_those_of_the_undivided_network_in_fp64) {
  for (const DecoderSpec& spec : {tiny_mixtral(), tiny_qwen3_moe()}) {
    double loss = 0, loss_divided = 0;
    const Whole one = gradients_of(spec, 1, 1, loss);
    for (const auto& [world, experts] : kWorlds) {
      const Whole divided = gradients_of(spec, world, experts, loss_divided);
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
}  // namespace shardplan::validator::experts_test
