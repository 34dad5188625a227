// However layers are divided among the stages of a pipeline, the same training comes out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "validator/engine_testing.h"

namespace shardplan::validator::pipeline_test {
namespace {

using namespace testing;

DecoderSpec tied_gpt2() {
  DecoderSpec s = tiny_gpt2();
  s.layers = 4;
  s.query_heads = s.key_value_heads = 4;
  s.head_dim = 4;
  return s;
}
DecoderSpec untied_llama() {
  DecoderSpec s = tiny_llama();
  s.layers = 4;
  return s;
}
DecoderSpec tied_qwen3() {
  DecoderSpec s = tiny_qwen3();
  s.layers = 4;
  return s;
}

constexpr std::int64_t kSamplesAtOnce = 8;  // micro-batches of a step, of all data-parallel ranks

TestRun run_of(int zero, const Pipeline& pipeline, int data = 1, int tensor = 1,
               DType dtype = DType::f32) {
  TestRun run{
      .micro_batch = 2, .sequence = 6, .world = pipeline.stages * data * tensor, .tensor = tensor};
  run.options.stage = zero;
  run.options.accumulation = kSamplesAtOnce / data;
  run.options.dtype = dtype;
  if (dtype == DType::f64) run.options.optimizer.states = dtype;
  run.options.optimizer.largest_norm = 1;
  run.options.schedule = ConstantLr{3e-3};
  run.options.pipeline = pipeline;
  return run;
}

void expect_losses(const std::vector<StepResult>& whole, const std::vector<StepResult>& divided,
                   const std::string& what, double tolerance = 1e-6, double norms = 1e-5) {
  ASSERT_EQ(whole.size(), divided.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(whole[i].loss, divided[i].loss, tolerance * whole[i].loss)
        << what << ", step " << i + 1;
    EXPECT_NEAR(whole[i].gradient_norm, divided[i].gradient_norm, norms * whole[i].gradient_norm)
        << what << ", step " << i + 1;
  }
}

std::vector<Pipeline> pipelines() {
  using Order = PipelineSchedule;
  return {{2, 1, Order::gpipe},
          {2, 1, Order::one_f_one_b},
          {2, 2, Order::interleaved},
          {4, 1, Order::gpipe},
          {4, 1, Order::one_f_one_b}};
}

std::string words(const DecoderSpec& spec, const Pipeline& p, int zero, int data) {
  return fmt::format("{}, {} × {} stages {}, ZeRO-{}, data {}", spec.family, p.stages, p.chunks,
                     name_of(p.order), zero, data);
}

class PipelineParallel : public ::testing::TestWithParam<int> {};

/// What rounding to fp32 makes of 50 steps grows with the rate, and in norms more than in losses:
/// by 3.5e-5 at a rate of 1e-3 for the network with head norms. In fp64 nothing is left of it.
void expect_losses_of_50_steps(int zero, DType dtype, double rate, double tolerance, double norms) {
  for (const DecoderSpec& spec : {tied_gpt2(), untied_llama(), tied_qwen3()}) {
    const auto of = [&](TestRun run) {
      run.options.schedule = ConstantLr{rate};
      return train(spec, run, 50);
    };
    const auto one = of(run_of(0, {}, 1, 1, dtype));
    EXPECT_LT(one.back().loss, 0.98 * one.front().loss);
    for (const Pipeline& p : pipelines())
      expect_losses(one, of(run_of(zero, p, 2, 1, dtype)), words(spec, p, zero, 2), tolerance,
                    norms);
  }
}

TEST_P(PipelineParallel, gives_the_losses_of_one_rank_over_50_steps_in_fp32) {
  expect_losses_of_50_steps(GetParam(), DType::f32, 1e-3, 1e-6, 1e-4);
}

TEST_P(PipelineParallel, gives_the_losses_of_one_rank_over_50_steps_in_fp64) {
  expect_losses_of_50_steps(GetParam(), DType::f64, 3e-3, 1e-11, 1e-10);
}

TEST_P(PipelineParallel, gives_the_losses_of_one_rank_over_30_steps_at_a_higher_rate) {
  for (const DecoderSpec& spec : {tied_gpt2(), untied_llama(), tied_qwen3()}) {
    const auto one = train(spec, run_of(0, {}), 30);
    for (const Pipeline& p : pipelines())
      for (const int data : {1, 2})
        expect_losses(one, train(spec, run_of(GetParam(), p, data), 30),
                      words(spec, p, GetParam(), data));
  }
}

TEST_P(PipelineParallel, gives_the_same_losses_when_blocks_are_done_again) {
  for (const Keep keep : {Keep::products, Keep::inputs})
    for (const Pipeline& p : pipelines()) {
      TestRun whole = run_of(0, {}), divided = run_of(GetParam(), p);
      whole.keep = divided.keep = keep;
      expect_losses(train(tied_qwen3(), whole, 10), train(tied_qwen3(), divided, 10),
                    words(tied_qwen3(), p, GetParam(), 1));
    }
}

TEST_P(PipelineParallel, goes_with_shared_layers) {
  for (const DecoderSpec& spec : {tied_gpt2(), untied_llama()})
    for (const Pipeline& p : {pipelines()[1], pipelines()[2]})
      expect_losses(train(spec, run_of(0, {}), 20), train(spec, run_of(GetParam(), p, 2, 2), 20),
                    words(spec, p, GetParam(), 2) + ", tensor 2");
}

INSTANTIATE_TEST_SUITE_P(Zero, PipelineParallel, ::testing::Values(0, 1));

TEST(PipelineParallelCopies, of_a_tied_table_stay_the_same_to_the_bit) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    TestRun run = run_of(1, {4, 1, PipelineSchedule::one_f_one_b}, 2);
    run.options.dtype = dtype;
    if (dtype == DType::bf16) run.options.optimizer.states = DType::bf16;
    std::vector<std::byte> first, last;
    std::mutex mutex;
    with_trainers(tied_gpt2(), run, [&](Trainer& trainer, BatchSource& batches) {
      for (int i = 0; i < 5; ++i) trainer.step(batches);
      trainer.finish();
      const int stage = trainer.runtime().stages.rank();
      if (stage > 0 && stage < 3) return;
      const Unit& unit = trainer.network().units().front();
      const Tensor table = unit.parameter(trainer.weights().resident(0), 0);
      const std::lock_guard lock(mutex);
      const auto* bytes = static_cast<const std::byte*>(table.data());
      (stage == 0 ? first : last).assign(bytes, bytes + table.bytes());
    });
    EXPECT_FALSE(first.empty());
    EXPECT_EQ(first, last) << name_of(dtype);
  }
}

}  // namespace
}  // namespace shardplan::validator::pipeline_test
