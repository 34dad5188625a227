// However a run with adapters is divided among ranks, the same training comes out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "support/subprocess.h"
#include "validator/engine_testing.h"

namespace shardplan::validator::divided_lora_test {
namespace {

using namespace testing;

constexpr int kSteps = 20;
constexpr std::int64_t kSamples = 4;  // micro-batches of a step, of all ranks with other samples

TestRun run_of(int stage, int data = 1) {
  TestRun run{.micro_batch = 2, .sequence = 8, .world = data};
  run.options.stage = stage;
  run.options.accumulation = kSamples / data;
  run.options.dtype = DType::f32;
  run.options.schedule = ConstantLr{1e-2};
  return run;
}

/// The losses without learning, of the same samples.
std::vector<StepResult> still(const DecoderSpec& spec) {
  TestRun run = run_of(0);
  run.options.schedule = ConstantLr{0};
  return train(spec, run, kSteps);
}

TestRun ringed(int stage, int context, int data) {
  TestRun run = run_of(stage, data);
  run.context = context;
  run.world = context * data;
  return run;
}

/// Grouped queries; head norms, biases; learned positions. Some layers of a matrix, and all.
std::vector<DecoderSpec> specs(BaseStore base = BaseStore::values) {
  return {adapted(tiny_llama(), {"q_proj", "v_proj"}, base),
          adapted(tiny_qwen3(), {"all-linear"}, base),
          adapted(tiny_gpt2(), {"c_attn", "c_proj"}, base)};
}

void expect_losses(const std::vector<StepResult>& whole, const std::vector<StepResult>& divided,
                   const std::string& what) {
  ASSERT_EQ(whole.size(), divided.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(whole[i].loss, divided[i].loss, 1e-6 * whole[i].loss) << what << ", step " << i + 1;
    EXPECT_NEAR(whole[i].gradient_norm, divided[i].gradient_norm, 3e-5 * whole[i].gradient_norm)
        << what << ", step " << i + 1;
  }
}

class Divided : public ::testing::TestWithParam<int> {};

TEST_P(Divided, sequences_give_the_losses_of_one_rank_in_fp32) {
  for (const DecoderSpec& spec : specs()) {
    const auto one = train(spec, run_of(0), kSteps);
    EXPECT_LT(one.back().loss, 0.999 * still(spec).back().loss) << "nothing was learned";
    std::vector<std::pair<int, int>> ranks{{2, 1}};
    if (spec.family == "qwen3") ranks.insert(ranks.end(), {{4, 1}, {2, 2}});
    for (const auto& [context, data] : ranks)
      expect_losses(one, train(spec, ringed(GetParam(), context, data), kSteps),
                    fmt::format("{}, context {}, data {}", spec.family, context, data));
  }
}

TEST_P(Divided, sequences_go_with_a_base_of_4_bits) {
  for (const BaseStore base : {BaseStore::nf4, BaseStore::nf4_double})
    for (const DecoderSpec& spec : specs(base))
      expect_losses(train(spec, run_of(0), kSteps), train(spec, ringed(GetParam(), 2, 1), kSteps),
                    spec.family);
}

TEST_P(Divided, sequences_change_nothing_when_blocks_are_done_again) {
  for (const Keep keep : {Keep::products, Keep::inputs})
    for (const BaseStore base : {BaseStore::values, BaseStore::nf4_double}) {
      const DecoderSpec spec = adapted(tiny_qwen3(), {"q_proj", "down_proj"}, base);
      TestRun divided = ringed(GetParam(), 2, 2);
      divided.keep = keep;
      expect_losses(train(spec, run_of(0), 10), train(spec, divided, 10), "done again");
    }
}

TEST_P(Divided, states_on_the_host_give_the_same_bits) {
  const TemporaryFolder folder;
  for (const DecoderSpec& spec :
       {specs()[0], specs(BaseStore::nf4)[2], specs(BaseStore::nf4_double)[1]})
    for (const auto& [context, data] : {std::pair{1, 1}, {1, 2}, {2, 1}}) {
      TestRun run = ringed(GetParam(), context, data);
      const auto here = train(spec, run, 8);
      run.storage.folder = folder.path("");
      for (const bool on_nvme : {false, true}) {
        run.options.offload = {.states = true, .on_nvme = on_nvme, .parameters = GetParam() == 3};
        const auto there = train(spec, run, 8);
        ASSERT_EQ(here.size(), there.size());
        for (std::size_t i = 0; i < here.size(); ++i) {
          EXPECT_EQ(here[i].loss, there[i].loss) << spec.family << ", step " << i + 1;
          EXPECT_EQ(here[i].gradient_norm, there[i].gradient_norm) << spec.family;
        }
      }
    }
}

/// Heads and widths that 2 and 4 ranks divide.
std::vector<DecoderSpec> divisible(BaseStore base = BaseStore::values) {
  DecoderSpec llama = tiny_llama(), qwen3 = tiny_qwen3(), gpt2 = tiny_gpt2();
  llama.query_heads = qwen3.query_heads = 8;
  llama.key_value_heads = qwen3.key_value_heads = 4;
  gpt2.query_heads = gpt2.key_value_heads = 4;
  gpt2.head_dim = 4;
  return {adapted(llama, {"q_proj", "v_proj", "down_proj"}, base),
          adapted(llama, {"up_proj"}, base), adapted(qwen3, {"all-linear"}, base),
          adapted(gpt2, {"c_attn", "c_proj"}, base)};
}

TestRun shared(int stage, int tensor, int data) {
  TestRun run = run_of(stage, data);
  run.tensor = tensor;
  run.world = tensor * data;
  return run;
}

TEST_P(Divided, layers_give_the_losses_of_one_rank_in_fp32) {
  for (const DecoderSpec& spec : divisible()) {
    const auto one = train(spec, run_of(0), kSteps);
    EXPECT_LT(one.back().loss, 0.999 * still(spec).back().loss) << "nothing was learned";
    std::vector<std::pair<int, int>> ranks{{2, 1}};
    if (spec.family == "qwen3") ranks.insert(ranks.end(), {{4, 1}, {2, 2}});
    for (const auto& [tensor, data] : ranks)
      expect_losses(one, train(spec, shared(GetParam(), tensor, data), kSteps),
                    fmt::format("{}, tensor {}, data {}", spec.family, tensor, data));
  }
}

/// As wide as it takes for all blocks of 64 of what 2 and 4 ranks share to be blocks of a part.
DecoderSpec of_whole_blocks(DecoderSpec spec, BaseStore base) {
  spec.query_heads = 8;
  spec.key_value_heads = spec.family == "gpt2" ? 8 : 4;
  spec.head_dim = 32;
  spec.hidden = spec.family == "gpt2" ? 256 : 16;
  spec.inner = 256;
  spec.init_stddev = 0.1F;
  return adapted(spec, {"all-linear"}, base);
}

TEST_P(Divided, layers_go_with_a_base_of_4_bits) {
  for (const DecoderSpec& plain : {tiny_llama(), tiny_qwen3(), tiny_gpt2()}) {
    const DecoderSpec spec = of_whole_blocks(plain, BaseStore::nf4);
    const auto one = train(spec, run_of(0), 8);
    for (const auto& [tensor, data] : {std::pair{2, 1}, {4, 1}, {2, 2}})
      expect_losses(one, train(spec, shared(GetParam(), tensor, data), 8),
                    fmt::format("{}, tensor {}, data {}", spec.family, tensor, data));
  }
}

/// Each rank has the mean of its own scales, so that a run differs from that of one rank, but not
/// from others of as many: nor with parts that 64 does not divide.
TEST_P(Divided, layers_have_scales_of_a_byte_of_their_own) {
  for (const DecoderSpec& spec :
       {of_whole_blocks(tiny_qwen3(), BaseStore::nf4_double), divisible(BaseStore::nf4)[2]}) {
    const auto two = train(spec, shared(0, 2, 1), 8);
    expect_losses(two, train(spec, shared(GetParam(), 2, 2), 8), spec.family);
    TestRun again = shared(GetParam(), 2, 1);
    again.keep = Keep::inputs;
    expect_losses(two, train(spec, again, 8), spec.family + ", done again");
    const auto one = train(spec, run_of(0), 8);
    EXPECT_NE(one.front().loss, two.front().loss);
    EXPECT_NEAR(one.front().loss, two.front().loss, 0.01 * one.front().loss);
  }
}

TEST_P(Divided, layers_change_nothing_when_blocks_are_done_again_or_sequences_shared) {
  const DecoderSpec spec = divisible()[2];
  const auto one = train(spec, run_of(0), 10);
  for (const Keep keep : {Keep::products, Keep::inputs})
    for (const int context : {1, 2}) {
      TestRun divided = shared(GetParam(), 2, 1);
      divided.keep = keep;
      divided.context = context;
      divided.world = 2 * context;
      expect_losses(one, train(spec, divided, 10), fmt::format("context {}", context));
    }
}

INSTANTIATE_TEST_SUITE_P(Zero, Divided, ::testing::Values(0, 1, 2, 3));

class DividedStages : public ::testing::TestWithParam<int> {};

std::vector<Pipeline> pipelines() {
  using Order = PipelineSchedule;
  return {{2, 1, Order::gpipe},
          {2, 1, Order::one_f_one_b},
          {2, 2, Order::interleaved},
          {4, 1, Order::one_f_one_b}};
}

/// The same of 4 layers.
DecoderSpec deeper(DecoderSpec spec) {
  spec.layers = 4;
  return spec;
}

TestRun staged(int stage, const Pipeline& pipeline, int context = 1, int tensor = 1) {
  TestRun run = run_of(stage);
  run.options.pipeline = pipeline;
  run.context = context;
  run.tensor = tensor;
  run.world = pipeline.stages * context * tensor;
  return run;
}

TEST_P(DividedStages, give_the_losses_of_one_rank_in_fp32) {
  for (const DecoderSpec& shallow :
       {specs()[0], specs()[2], specs(BaseStore::nf4)[1], specs(BaseStore::nf4_double)[0]}) {
    const DecoderSpec spec = deeper(shallow);
    const auto one = train(spec, run_of(0), kSteps);
    for (const Pipeline& p : pipelines())
      expect_losses(
          one, train(spec, staged(GetParam(), p), kSteps),
          fmt::format("{}, {} × {} {}", spec.family, p.stages, p.chunks, name_of(p.order)));
  }
}

TEST_P(DividedStages, go_with_what_else_divides_and_with_blocks_done_again) {
  const DecoderSpec spec = deeper(divisible()[2]);
  const auto one = train(spec, run_of(0), 10);
  for (const Keep keep : {Keep::products, Keep::inputs})
    for (const Pipeline& p : {pipelines()[1], pipelines()[2]})
      for (const auto& [context, tensor] : {std::pair{1, 2}, {2, 1}}) {
        TestRun divided = staged(GetParam(), p, context, tensor);
        divided.keep = keep;
        expect_losses(one, train(spec, divided, 10),
                      fmt::format("{} chunks, context {}, tensor {}", p.chunks, context, tensor));
      }
}

INSTANTIATE_TEST_SUITE_P(Zero, DividedStages, ::testing::Values(0, 1));

/// Gradients of adapters in fp64 by unit and parameter, put together from all ranks. Both factors
/// have values, as after some steps.
using Whole = std::map<std::string, std::vector<double>>;

Whole gradients_of(const DecoderSpec& spec, int tensor) {
  TestRun run = shared(0, tensor, 1);
  run.options.dtype = run.options.optimizer.states = DType::f64;
  Whole all;
  std::mutex mutex;
  with_trainers(spec, run, [&](Trainer& trainer, BatchSource& batches) {
    const std::vector<Unit>& units = trainer.network().units();
    const auto for_each_element = [&](auto&& visit) {
      for (std::size_t u = 0; u < units.size(); ++u)
        for (const ParameterSpec& p : units[u].parameters)
          if (!units[u].frozen)
            for_each_run(p, [&](const Run& r) {
              for (std::int64_t i = 0; i < r.length; ++i)
                visit(static_cast<int>(u), p, p.offset + r.here + i, r.whole + i);
            });
    };
    for_each_element([&](int u, const ParameterSpec& p, std::int64_t here, std::int64_t whole) {
      const auto id = static_cast<std::uint64_t>(p.whole_offset + whole);
      trainer.weights().owned(u).as<double>()[here] =
          unit_interval(
              static_cast<std::uint32_t>(random_bits(6, id, static_cast<std::uint64_t>(u)))) -
          0.5;
    });
    trainer.gradients_of(batches);
    const std::lock_guard lock(mutex);
    for_each_element([&](int u, const ParameterSpec& p, std::int64_t here, std::int64_t whole) {
      std::vector<double>& g = all[units[static_cast<std::size_t>(u)].name + "." + p.name];
      g.resize(static_cast<std::size_t>(p.whole.numel()), NAN);
      double& there = g[static_cast<std::size_t>(whole)];
      const double value = trainer.gradients().owned(u).as<double>()[here];
      if (!std::isnan(there)) {
        EXPECT_EQ(there, value) << "what ranks have alike they have to the bit";
      }
      there = value;
    });
  });
  return all;
}

TEST(DividedAdapters, have_the_gradients_of_whole_ones_in_fp64) {
  for (const DecoderSpec& spec : divisible()) {
    const Whole one = gradients_of(spec, 1);
    for (const int tensor : {2, 4}) {
      const Whole divided = gradients_of(spec, tensor);
      ASSERT_EQ(one.size(), divided.size());
      for (const auto& [name, whole] : one) {
        const std::vector<double>& parts = divided.at(name);
        ASSERT_EQ(whole.size(), parts.size()) << name;
        double largest = 0;
        for (const double g : whole) largest = std::max(largest, std::abs(g));
        EXPECT_GT(largest, 0) << name;
        for (std::size_t i = 0; i < whole.size(); ++i)
          ASSERT_NEAR(whole[i], parts[i], 1e-14) << spec.family << ' ' << name << ' ' << i;
      }
    }
  }
}

/// A is drawn for the inputs of the whole layer, whatever part of them a rank has.
TEST(DividedAdapters, begin_with_the_values_of_whole_ones) {
  for (const DecoderSpec& spec : divisible()) {
    const auto one = train(spec, run_of(0), 2), two = train(spec, shared(0, 2, 1), 2);
    EXPECT_NEAR(one[1].loss, two[1].loss, 1e-6 * one[1].loss) << spec.family;
  }
}

}  // namespace
}  // namespace shardplan::validator::divided_lora_test
