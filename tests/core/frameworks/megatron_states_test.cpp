// What Megatron-LM keeps where Muon updates matrices whole, and where parameters are divided.
#include <gtest/gtest.h>

#include "frameworks/megatron/matrices.h"
#include "frameworks/registry.h"
#include "lowering/lower.h"
#include "lowering/rank_model.h"
#include "optimizers/registry.h"
#include "small_llama.h"
#include "support/plan_testing.h"

namespace shardplan::megatron_states_test {
namespace {

using namespace small_llama;

constexpr std::int64_t kWords = 4096, kMatrices = kLayers * kWeights;
constexpr std::int64_t kOthers = 2 * kWords * kHidden + (2 * kLayers + 1) * kHidden;

Plan on(std::int64_t ranks, std::string_view optimizer) {
  Plan plan = plan_of(FrameworkKind::megatron, "bf16-master", ranks);
  plan.optimizer.kind = find_optimizer(optimizer);
  plan.framework.megatron.distributed_optimizer = ranks > 1;
  plan.framework.megatron.overlap_param_gather = ranks > 1;
  return plan;
}

std::int64_t of(const Plan& plan, Category category) {
  return resident(estimate(llama(plan, kWords), plan, Calibration{}), category);
}

TEST(MegatronMuon, KeepsOneMomentumOfMatricesAndAdamsOfTheRest) {
  const auto bytes = static_cast<double>(4 * kMatrices + 8 * kOthers);
  EXPECT_NEAR(static_cast<double>(of(on(1, "muon"), Category::optimizer_states)), bytes,
              0.001 * bytes);
  EXPECT_NEAR(static_cast<double>(of(on(1, "adamw"), Category::optimizer_states)),
              static_cast<double>(8 * (kMatrices + kOthers)), 0.001 * bytes);
}

/// No matrix is cut: a rank may have a third more than its share, and not less.
TEST(MegatronMuon, GivesRanksWholeMatrices) {
  const std::int64_t share = (4 * kMatrices + 8 * kOthers) / 4;
  const std::int64_t kept = of(on(4, "muon"), Category::optimizer_states);
  EXPECT_GT(kept, share);
  EXPECT_LE(kept, share * 13 / 10 + kAllocationUnit);
}

TEST(MegatronMuon, MultipliesMatricesAloneAndOfExpertsEach) {
  const Plan plan = on(1, "muon");
  const Model model = llama(plan, kWords);
  const Matrices matrices = matrices_of(model, plan.optimizer);
  EXPECT_EQ(matrices.elements, kMatrices);
  EXPECT_EQ(matrices.largest_elements, kHidden * kFfn);
  double flops = 0;
  for (const Kernel& k : matrix_products(model, plan, 1))
    flops += 2.0 * k.calls * static_cast<double>(k.m) * static_cast<double>(k.n) *
             static_cast<double>(k.k);
  // Five times X Xᵀ, its square and their product, of the smaller side s and the larger l.
  const auto each = [](double s, double l) {
    return 5 * (2 * s * s * l + 2 * s * s * s + 2 * s * s * l);
  };
  const double h = kHidden;
  const double expected = kLayers * (2 * each(h, h) + 2 * each(kKeys, h) + 3 * each(h, kFfn));
  EXPECT_DOUBLE_EQ(flops, expected);
  EXPECT_TRUE(matrices_of(model, on(1, "adamw").optimizer).elements == 0);
}

/// Megatron-FSDP's optim_grads_params: a part of each, and the whole of two layers and of the ends.
TEST(MegatronSharding, DividesParametersAndGathersLayers) {
  Plan whole = on(4, "adamw");
  whole.framework.megatron.shard_gradients = true;
  Plan divided = whole;
  divided.framework.megatron.shard_parameters = true;
  const std::int64_t all = kMatrices + kOthers;
  EXPECT_NEAR(static_cast<double>(of(whole, Category::parameters)), 2.0 * all, 0.01 * all);
  EXPECT_NEAR(static_cast<double>(of(divided, Category::parameters)), 0.5 * all, 0.01 * all);
  const std::int64_t gathered =
      of(divided, Category::communication_buffers) - of(whole, Category::communication_buffers);
  const std::int64_t layer = kMatrices / kLayers + 2 * kHidden;
  const std::int64_t ends = 2 * kWords * kHidden + kHidden;
  EXPECT_NEAR(static_cast<double>(gathered), static_cast<double>(2 * 2 * layer + 2 * ends), 4096);
}

/// Twice in each micro-batch in place of once a step.
TEST(MegatronSharding, GathersParametersForEveryPass) {
  const auto traffic = [](bool parameters, std::int64_t batches) {
    Plan plan = on(4, "adamw");
    plan.framework.megatron.shard_gradients = true;
    plan.framework.megatron.shard_parameters = parameters;
    plan.workload.gradient_accumulation = batches;
    const Model model = llama(plan, kWords);
    const Estimate e = estimate(model, plan, Calibration{});
    double bytes = 0;
    for (const TrafficLine& line : e.traffic)
      if (line.what == "parameter all-gather") bytes += static_cast<double>(line.bytes_per_step);
    return bytes;
  };
  const double once = traffic(false, 3);
  EXPECT_GT(once, 0);
  EXPECT_NEAR(traffic(true, 3), 6 * once, 0.01 * once);
}

}  // namespace
}  // namespace shardplan::megatron_states_test
