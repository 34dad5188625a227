// What a run costs: the job's price, the list's, and sums that follow from the step.
#include "questions/cost.h"

#include <gtest/gtest.h>

#include "support/plan_testing.h"

namespace shardplan::cost_test {
namespace {

/// Two nodes of four GPUs; each takes a row of 1,000 tokens.
Plan plan_of() {
  Plan plan;
  plan.cluster.nodes = 2;
  plan.cluster.gpus_per_node = 4;
  plan.cluster.gpu.tdp_watts = 500;
  plan.workload.micro_batch = 1;
  plan.workload.sequence_length = 1000;
  return plan;
}

TEST(Cost, TheWholeRunFollowsFromTheStep) {
  Plan plan = plan_of();
  plan.cluster.price_per_hour = 9;
  plan.cluster.spot_price_per_hour = 3;
  plan.workload.tokens = 8e9;
  const Cost cost = cost_of(plan, 3.6, {});  // 8,000 tokens a step: 1e6 steps are 1,000 hours
  EXPECT_DOUBLE_EQ(*cost.days, 1000.0 / 24);
  EXPECT_DOUBLE_EQ(*cost.gpu_hours, 8000);
  EXPECT_DOUBLE_EQ(*cost.whole.on_demand, 18'000);
  EXPECT_DOUBLE_EQ(*cost.whole.spot, 6000);
  EXPECT_DOUBLE_EQ(*cost.kwh, 4000);
  EXPECT_DOUBLE_EQ(*cost.per_billion_tokens.on_demand, 18'000 / 8.0);
  EXPECT_FALSE(cost.list);
}

TEST(Cost, WithoutTokensThereIsNoWhole) {
  Plan plan = plan_of();
  plan.cluster.price_per_hour = 9;
  const Cost cost = cost_of(plan, 3.6, {});
  EXPECT_FALSE(cost.days || cost.gpu_hours || cost.whole.on_demand);
  EXPECT_TRUE(cost.per_billion_tokens.on_demand);
  EXPECT_FALSE(cost.per_billion_tokens.spot);
}

TEST(Cost, APriceThatIsSaidComesBeforeTheList) {
  Plan plan = plan_of();
  plan.cluster.list_price = ListPrice{.machine = "m", .on_demand = 20, .spot = 5};
  const Cost listed = cost_of(plan, 1, {});
  ASSERT_TRUE(listed.list);
  EXPECT_EQ(listed.per_hour.on_demand, 40);
  EXPECT_EQ(listed.per_hour.spot, 10);
  plan.cluster.price_per_hour = 7;
  const Cost said = cost_of(plan, 1, {});
  EXPECT_FALSE(said.list);
  EXPECT_EQ(said.per_hour.on_demand, 14);
  EXPECT_FALSE(said.per_hour.spot);  // the list's is of another offer
  const Cost asked = cost_of(plan, 1, {.price_per_gpu_hour = 2});
  EXPECT_EQ(asked.per_hour.on_demand, 16);
}

/// A rollout engine's GPUs are paid and draw power too, whatever they wait for.
TEST(Cost, AnEnginesOwnGpusArePaid) {
  Plan plan = plan_of();
  plan.cluster.price_per_hour = 9;
  plan.workload.tokens = 8e9;
  plan.engine_gpus = 8;
  plan.engine_nodes = 2;
  const Cost cost = cost_of(plan, 3.6, {});
  EXPECT_EQ(cost.per_hour.on_demand, 36);
  EXPECT_DOUBLE_EQ(*cost.gpu_hours, 16'000);
  EXPECT_DOUBLE_EQ(*cost.kwh, 8000);
  EXPECT_EQ(cost_of(plan, 1, {.price_per_gpu_hour = 2}).per_hour.on_demand, 32);
}

TEST(Cost, NoTimeNoMoney) {
  Plan plan = plan_of();
  plan.cluster.price_per_hour = 7;
  plan.workload.tokens = 1e9;
  const Cost cost = cost_of(plan, 0, {});
  EXPECT_EQ(cost.per_hour.on_demand, 14);
  EXPECT_FALSE(cost.per_step.on_demand || cost.days || cost.whole.on_demand);
}

}  // namespace
}  // namespace shardplan::cost_test
