// However a run with adapters is divided among ranks, the same training comes out.
#include <fmt/format.h>
#include <gtest/gtest.h>

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
    for (const auto& [context, data] : {std::pair{2, 1}, {4, 1}, {2, 2}})
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

INSTANTIATE_TEST_SUITE_P(Zero, Divided, ::testing::Values(0, 1, 2, 3));

}  // namespace
}  // namespace shardplan::validator::divided_lora_test
