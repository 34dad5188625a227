// Networks with experts whose layers or sequences are divided too: the same training comes out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "validator/engine_testing.h"
#include "validator/whole_gradients.h"

namespace shardplan::validator::experts_divided_otherwise_test {
namespace {

using namespace testing;

/// Eight micro-batches of two sequences, whatever they are divided over.
TestRun run_of(int zero, int data, int context, int experts, const Pipeline& pipeline,
               DType dtype = DType::f64) {
  TestRun run{.micro_batch = 2,
              .sequence = 8,
              .world = data * context * pipeline.stages,
              .context = context,
              .experts = experts};
  run.options.stage = zero;
  run.options.accumulation = 8 / data;
  run.options.dtype = dtype;
  if (dtype == DType::f64) run.options.optimizer.states = dtype;
  run.options.optimizer.largest_norm = 1;
  // In fp32 rounding decides between two experts that are as good as each other: the sooner the
  // faster it trains.
  run.options.schedule = ConstantLr{dtype == DType::f32 ? 1e-3 : 3e-3};
  run.options.pipeline = pipeline;
  return run;
}

/// Half as many micro-batches: without a pipeline nothing waits for more.
TestRun shorter(TestRun run) {
  run.options.accumulation /= 2;
  return run;
}

DecoderSpec four_layers(DecoderSpec spec, float balance) {
  spec.layers = 4;
  spec.experts->balance = balance;
  return spec;
}
DecoderSpec mixtral(float balance = 0) {
  return four_layers(tiny_mixtral(), balance);
}
DecoderSpec qwen3_moe(float balance = 0) {
  DecoderSpec spec = four_layers(tiny_qwen3_moe(), balance);
  spec.tied = true;
  return spec;
}

std::vector<Pipeline> pipelines() {
  using Order = PipelineSchedule;
  return {{2, 1, Order::gpipe},
          {2, 1, Order::one_f_one_b},
          {2, 2, Order::interleaved},
          {4, 1, Order::one_f_one_b}};
}

/// Over data, context and expert ranks.
struct Degrees {
  int data, context, experts;
};
constexpr Degrees kOfStages[] = {{1, 1, 1}, {2, 1, 1}, {2, 1, 2}, {4, 1, 2}, {2, 2, 2}};
constexpr Degrees kOfSequences[] = {{1, 2, 1}, {1, 2, 2}, {2, 2, 2}, {1, 4, 2}, {2, 2, 4}};

std::string words(const DecoderSpec& spec, const TestRun& run) {
  const Pipeline& p = run.options.pipeline;
  return fmt::format("{}, {} × {} stages {}, ZeRO-{}, {} ranks, context {}, experts {}",
                     spec.family, p.stages, p.chunks, name_of(p.order), run.options.stage,
                     run.world, run.context, run.experts);
}

void expect_as_whole(const DecoderSpec& spec, const TestRun& whole, const TestRun& divided,
                     int steps, double tolerance) {
  expect_alike(train(spec, whole, steps), train(spec, divided, steps), tolerance,
               words(spec, divided));
}

/// Sums of norms are in another order where ranks share a sequence or a layer.
void expect_alike_in_fp32(const std::vector<StepResult>& whole,
                          const std::vector<StepResult>& divided, const std::string& which) {
  constexpr double kLosses = 1e-6, kNorms = 3e-5;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(whole[i].loss, divided[i].loss, kLosses * whole[i].loss) << which;
    EXPECT_NEAR(whole[i].gradient_norm, divided[i].gradient_norm, kNorms * whole[i].gradient_norm)
        << which;
  }
}

class ExpertsInStages : public ::testing::TestWithParam<int> {};

TEST_P(ExpertsInStages, give_the_losses_of_one_rank_over_50_steps_in_fp32) {
  const TestRun whole = run_of(0, 1, 1, 1, {}, DType::f32);
  const auto one = train(mixtral(), whole, 50);
  EXPECT_LT(one.back().loss, one.front().loss);
  for (const Pipeline& p : pipelines()) {
    const TestRun divided = run_of(GetParam(), 2, 1, 2, p, DType::f32);
    expect_alike(one, train(mixtral(), divided, 50), 1e-6, words(mixtral(), divided));
  }
}

TEST_P(ExpertsInStages, give_the_losses_of_one_rank_in_fp64) {
  for (const DecoderSpec& spec : {mixtral(), qwen3_moe()}) {
    const auto one = train(spec, run_of(0, 1, 1, 1, {}), 6);
    for (const Pipeline& p : pipelines())
      for (const Degrees& d : kOfStages) {
        const TestRun divided = run_of(GetParam(), d.data, d.context, d.experts, p);
        expect_alike(one, train(spec, divided, 6), 1e-11, words(spec, divided));
      }
  }
}

TEST_P(ExpertsInStages, give_the_same_losses_when_blocks_are_done_again) {
  for (const Keep keep : {Keep::products, Keep::inputs})
    for (const Pipeline& p : pipelines()) {
      TestRun whole = run_of(0, 1, 1, 1, {}), divided = run_of(GetParam(), 2, 1, 2, p);
      whole.keep = divided.keep = keep;
      expect_as_whole(qwen3_moe(), whole, divided, 6, 1e-11);
    }
}

TEST_P(ExpertsInStages, drop_the_same_rows_and_count_those_of_all_stages) {
  for (const Pipeline& p : pipelines())
    for (const int experts : {1, 2}) {
      TestRun whole = run_of(0, 1, 1, 1, {}), divided = run_of(GetParam(), 2, 1, experts, p);
      whole.capacity_factor = divided.capacity_factor = 0.8;
      EXPECT_GT(train(mixtral(), whole, 1).front().dropped, 0);
      expect_as_whole(mixtral(), whole, divided, 6, 1e-11);
    }
}

TEST_P(ExpertsInStages, train_adapters_as_one_rank_does) {
  const DecoderSpec spec =
      with_experts(adapted(qwen3_moe(), {"q_proj", "o_proj"}), {"experts.down_proj"});
  for (const Pipeline& p : pipelines())
    for (const BaseStore base : {BaseStore::values, BaseStore::nf4}) {
      DecoderSpec of = spec;
      of.lora->base = base;
      expect_as_whole(of, run_of(0, 1, 1, 1, {}, DType::f32),
                      run_of(GetParam(), 2, 1, 2, p, DType::f32), 10, 1e-6);
    }
}

INSTANTIATE_TEST_SUITE_P(Zero, ExpertsInStages, ::testing::Values(0, 1));

class ExpertsBesideSequences : public ::testing::TestWithParam<int> {};

/// The balance too is of whole micro-batches.
TEST_P(ExpertsBesideSequences, give_the_losses_of_one_rank_in_fp64) {
  for (const DecoderSpec& spec : {mixtral(0.1F), qwen3_moe()}) {
    const auto one = train(spec, shorter(run_of(0, 1, 1, 1, {})), 10);
    EXPECT_LT(one.back().loss, one.front().loss);
    for (const Degrees& d : kOfSequences) {
      const TestRun divided = shorter(run_of(GetParam(), d.data, d.context, d.experts, {}));
      expect_alike(one, train(spec, divided, 10), 1e-11, words(spec, divided));
    }
  }
}

/// Norms differ more than losses, as they do without experts (context_parallel_test.cpp).
TEST_P(ExpertsBesideSequences, give_the_losses_of_one_rank_over_50_steps_in_fp32) {
  const DecoderSpec spec = mixtral(0.1F);
  const auto one = train(spec, shorter(run_of(0, 1, 1, 1, {}, DType::f32)), 50);
  for (const Degrees& d : kOfSequences) {
    const TestRun run = shorter(run_of(GetParam(), d.data, d.context, d.experts, {}, DType::f32));
    expect_alike_in_fp32(one, train(spec, run, 50), words(spec, run));
  }
}

TEST_P(ExpertsBesideSequences, give_the_same_losses_when_blocks_are_done_again) {
  for (const Keep keep : {Keep::products, Keep::inputs}) {
    TestRun whole = run_of(0, 1, 1, 1, {}), divided = run_of(GetParam(), 2, 2, 2, {});
    whole.keep = divided.keep = keep;
    expect_as_whole(qwen3_moe(0.1F), whole, divided, 6, 1e-11);
  }
}

TEST_P(ExpertsBesideSequences, give_the_same_bits_with_states_on_the_host) {
  TestRun here = run_of(GetParam(), 2, 2, 2, {}, DType::f32), there = here;
  there.options.offload = {.states = true, .parameters = GetParam() == 3};
  expect_alike(train(mixtral(0.1F), here, 4), train(mixtral(0.1F), there, 4), 0, "on the host");
}

INSTANTIATE_TEST_SUITE_P(Zero, ExpertsBesideSequences, ::testing::Values(0, 1, 2, 3));

/// Attention divided among `tensor` ranks, which have experts as the others do.
TestRun sharing_layers(TestRun run, int tensor) {
  run.world *= tensor;
  run.tensor = tensor;
  return run;
}

/// As many heads of keys as of queries, so that four ranks can share them.
DecoderSpec with_four_heads(DecoderSpec spec) {
  spec.key_value_heads = 4;
  return spec;
}

/// Experts among the ranks that share layers, among those and others, and among some of them.
struct LayerDegrees {
  int data, context, tensor, experts;
};
constexpr LayerDegrees kOfLayers[] = {{1, 1, 2, 2}, {2, 1, 2, 2}, {2, 1, 2, 4}, {1, 2, 2, 2},
                                      {1, 2, 2, 4}, {1, 1, 4, 2}, {1, 1, 4, 4},
                                      {1, 1, 2, 1}, {2, 1, 2, 1}, {1, 2, 2, 1}};

TestRun run_of(int zero, const LayerDegrees& d, const Pipeline& pipeline = {},
               DType dtype = DType::f64) {
  return sharing_layers(run_of(zero, d.data, d.context, d.experts, pipeline, dtype), d.tensor);
}

std::string words(const DecoderSpec& spec, const TestRun& run, int tensor) {
  return fmt::format("{}, tensor {}", words(spec, run), tensor);
}

class ExpertsBesideLayers : public ::testing::TestWithParam<int> {};

/// The balance is of the rows of all ranks that share a micro-batch.
TEST_P(ExpertsBesideLayers, give_the_losses_of_one_rank_in_fp64) {
  for (const DecoderSpec& spec :
       {with_four_heads(mixtral(0.1F)), with_four_heads(qwen3_moe(0.1F))}) {
    const auto one = train(spec, shorter(run_of(0, 1, 1, 1, {})), 10);
    EXPECT_LT(one.back().loss, one.front().loss);
    for (const LayerDegrees& d : kOfLayers) {
      const TestRun divided = shorter(run_of(GetParam(), d));
      expect_alike(one, train(spec, divided, 10), 1e-11, words(spec, divided, d.tensor));
    }
  }
}

TEST_P(ExpertsBesideLayers, give_the_losses_of_one_rank_over_50_steps_in_fp32) {
  const DecoderSpec spec = with_four_heads(mixtral(0.1F));
  const auto one = train(spec, shorter(run_of(0, 1, 1, 1, {}, DType::f32)), 50);
  // Those that differ most: the others' losses are in fp64 alone, as they take a minute more.
  for (const LayerDegrees& d : {kOfLayers[0], kOfLayers[4]}) {
    const TestRun run = shorter(run_of(GetParam(), d, {}, DType::f32));
    expect_alike_in_fp32(one, train(spec, run, 50), words(spec, run, d.tensor));
  }
}

TEST_P(ExpertsBesideLayers, give_the_same_losses_in_stages) {
  if (GetParam() > 1) GTEST_SKIP() << "beside a pipeline there are stages 0 and 1";
  const DecoderSpec spec = mixtral();
  const auto one = train(spec, run_of(0, 1, 1, 1, {}), 10);
  for (const Pipeline& p : pipelines())
    for (const LayerDegrees& d : {kOfLayers[0], kOfLayers[2]}) {
      if (p.stages > 2 && d.data > 1) continue;  // too many ranks for a test
      const TestRun divided = run_of(GetParam(), d, p);
      expect_alike(one, train(spec, divided, 10), 1e-11, words(spec, divided, d.tensor));
    }
}

TEST_P(ExpertsBesideLayers, give_the_same_losses_when_blocks_are_done_again) {
  for (const Keep keep : {Keep::products, Keep::inputs})
    for (const int every : {0, 2}) {
      TestRun whole = run_of(0, 1, 1, 1, {}), divided = run_of(GetParam(), kOfLayers[2]);
      whole.keep = divided.keep = keep;
      whole.products_again = divided.products_again = {every};
      expect_as_whole(qwen3_moe(0.1F), whole, divided, 6, 1e-11);
    }
}

/// Two ranks have a sequence of each micro-batch: experts have room as with one sequence in each.
TEST_P(ExpertsBesideLayers, drop_the_rows_that_ranks_with_other_samples_would) {
  TestRun whole = run_of(0, 1, 1, 1, {}), divided = run_of(GetParam(), kOfLayers[2]);
  whole.micro_batch = 1;
  whole.options.accumulation *= 2;
  whole.capacity_factor = divided.capacity_factor = 0.8;
  EXPECT_GT(train(mixtral(), whole, 1).front().dropped, 0);
  expect_as_whole(mixtral(), whole, divided, 6, 1e-11);
}

TEST_P(ExpertsBesideLayers, give_the_same_bits_with_states_on_the_host) {
  TestRun here = run_of(GetParam(), kOfLayers[2], {}, DType::f32), there = here;
  there.options.offload = {.states = true, .parameters = GetParam() == 3};
  expect_alike(train(mixtral(0.1F), here, 4), train(mixtral(0.1F), there, 4), 0, "on the host");
}

TEST_P(ExpertsBesideLayers, train_adapters_as_one_rank_does) {
  const DecoderSpec spec =
      with_experts(adapted(qwen3_moe(), {"q_proj", "o_proj"}), {"experts.down_proj"});
  expect_as_whole(spec, run_of(0, 1, 1, 1, {}, DType::f32),
                  run_of(GetParam(), kOfLayers[2], {}, DType::f32), 10, 1e-6);
}

/// Ranks that share attention have its scales together; an expert has all of its rows on its rank,
/// as in the undivided network.
TEST_P(ExpertsBesideLayers, round_to_fp8_as_one_rank_does_in_fp64) {
  const DecoderSpec spec = mixtral();
  const auto plain = train(spec, run_of(0, 1, 1, 1, {}), 6);
  for (const Fp8Recipe fp8 : {Fp8Recipe::tensorwise, Fp8Recipe::rowwise}) {
    TestRun whole = run_of(0, 1, 1, 1, {}), divided = run_of(GetParam(), kOfLayers[0]);
    whole.fp8 = divided.fp8 = fp8;
    const auto one = train(spec, whole, 6);
    EXPECT_GT(std::abs(one.back().loss / plain.back().loss - 1), 1e-5) << "nothing is in 8 bits";
    expect_alike(one, train(spec, divided, 6), 1e-9, words(spec, divided, 2));
  }
}

INSTANTIATE_TEST_SUITE_P(Zero, ExpertsBesideLayers, ::testing::Values(0, 1, 2, 3));

void expect_whole_gradients(const DecoderSpec& spec, const TestRun& divided) {
  double loss = 0, loss_divided = 0;
  const Whole one = whole_gradients(spec, run_of(0, 1, 1, 1, {}), loss);
  const Whole parts = whole_gradients(spec, divided, loss_divided);
  const std::string what = words(spec, divided);
  EXPECT_NEAR(loss, loss_divided, 1e-13) << what;
  ASSERT_EQ(one.size(), parts.size()) << what;
  for (const auto& [name, whole] : one) {
    const std::vector<double>& part = parts.at(name);
    ASSERT_EQ(whole.size(), part.size()) << what << ' ' << name;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      if (std::isnan(whole[i]) && std::isnan(part[i])) continue;  // padding
      ASSERT_NEAR(whole[i], part[i], 1e-14) << what << ' ' << name << ' ' << i;
    }
  }
}

TEST(ExpertGradients, are_those_of_the_undivided_network_in_fp64) {
  for (const LayerDegrees& d : kOfLayers)
    if (d.tensor == 2) expect_whole_gradients(mixtral(0.1F), run_of(0, d));
  for (const Pipeline& p : pipelines())
    expect_whole_gradients(mixtral(), run_of(0, kOfLayers[0], p));
  for (const Degrees& d : kOfSequences)
    expect_whole_gradients(mixtral(0.1F), run_of(0, d.data, d.context, d.experts, {}));
  for (const Pipeline& p : pipelines())
    for (const Degrees& d : kOfStages)
      expect_whole_gradients(mixtral(), run_of(0, d.data, d.context, d.experts, p));
}

}  // namespace
}  // namespace shardplan::validator::experts_divided_otherwise_test
