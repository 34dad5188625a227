// The engine's gradients in fp64 against central differences of its own loss, parameter by
// parameter: a wrong term anywhere in the forward or backward pass of a block shows here.
#include <gtest/gtest.h>

#include <cmath>

#include "validator/engine_testing.h"

namespace shardplan::validator::testing {
namespace {

/// Puts element `i` of a unit's parameters off by `by`.
void nudge(Trainer& trainer, int unit, std::int64_t i, double by) {
  trainer.weights().owned(unit).as<double>()[i] += by;
}

void expect_gradients_match(const NetworkSpec& spec, Keep keep, double capacity_factor = 0) {
  TestRun run{.keep = keep, .capacity_factor = capacity_factor};
  run.options.dtype = run.options.optimizer.states = DType::f64;
  with_trainers(spec, run, [&](Trainer& trainer, BatchSource& batches) {
    trainer.gradients_of(batches);
    const std::vector<Unit>& units = trainer.network().units();
    std::vector<std::vector<double>> analytic;
    for (std::size_t u = 0; u < units.size(); ++u) {
      const double* g = trainer.gradients().owned(static_cast<int>(u)).as<double>();
      analytic.emplace_back(g, g + units[u].numel);
    }
    constexpr double kStep = 1e-5;
    for (std::size_t u = 0; u < units.size(); ++u) {
      for (const ParameterSpec& p : units[u].parameters) {
        const std::int64_t stride = std::max<std::int64_t>(1, p.shape.numel() / 7);
        for (std::int64_t i = p.offset; i < p.offset + p.shape.numel(); i += stride) {
          const int unit = static_cast<int>(u);
          nudge(trainer, unit, i, kStep);
          const double above = trainer.gradients_of(batches);
          nudge(trainer, unit, i, -2 * kStep);
          const double below = trainer.gradients_of(batches);
          nudge(trainer, unit, i, kStep);
          const double numeric = (above - below) / (2 * kStep);
          EXPECT_NEAR(analytic[u][static_cast<std::size_t>(i)], numeric,
                      1e-7 + 1e-6 * std::abs(numeric))
              << units[u].name << "." << p.name << " element " << i - p.offset;
        }
      }
    }
  });
}

TEST(Gradients, of_a_gpt2_match_finite_differences) {
  expect_gradients_match(tiny_gpt2(), Keep::everything);
}
TEST(Gradients, of_a_llama_with_grouped_queries_match_finite_differences) {
  expect_gradients_match(tiny_llama(), Keep::everything);
}
TEST(Gradients, of_a_qwen3_with_head_norms_match_finite_differences) {
  expect_gradients_match(tiny_qwen3(), Keep::everything);
}
TEST(Gradients, of_experts_and_their_balance_match_finite_differences) {
  expect_gradients_match(tiny_mixtral(), Keep::everything);
}
TEST(Gradients, of_experts_whose_weights_are_not_renormalised_match_finite_differences) {
  expect_gradients_match(tiny_qwen3_moe(), Keep::everything);
}
TEST(Gradients, of_experts_that_drop_rows_match_finite_differences) {
  expect_gradients_match(tiny_mixtral(), Keep::everything, 0.75);
  expect_gradients_match(tiny_qwen3_moe(), Keep::everything, 0.5);
}
TEST(Gradients, of_a_perceptron_match_finite_differences) {
  expect_gradients_match(MlpSpec{{7, 9, 5}}, Keep::everything);
}
TEST(Gradients, do_not_change_when_blocks_are_checkpointed) {
  expect_gradients_match(tiny_gpt2(), Keep::inputs);
  expect_gradients_match(tiny_qwen3(), Keep::inputs);
  expect_gradients_match(tiny_mixtral(), Keep::inputs);
  expect_gradients_match(tiny_mixtral(), Keep::inputs, 0.75);
}
TEST(Gradients, do_not_change_when_norms_and_activations_are_done_again) {
  expect_gradients_match(tiny_gpt2(), Keep::products);
  expect_gradients_match(tiny_qwen3(), Keep::products);
  expect_gradients_match(tiny_qwen3_moe(), Keep::products);
  expect_gradients_match(tiny_mixtral(), Keep::products, 0.75);
}

}  // namespace
}  // namespace shardplan::validator::testing
