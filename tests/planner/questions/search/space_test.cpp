// The space of a search: indices, rules, and the values of axes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "search_testing.h"
#include "support/error_of.h"

namespace shardplan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Axis& axis_named(const SearchSpace& space, std::string_view name) {
  for (const Axis& axis : space.axes)
    if (axis.name == name) return axis;
  throw std::runtime_error("no such axis");
}

TEST(Space, NumbersItsCandidates) {
  const SearchSpace space = make_space(small_llama(), small_plan(12), small_axes());
  for (std::int64_t i = 0; i < space.size(); i += 7)
    EXPECT_EQ(space.index_of(space.choice_at(i)), i);
}

TEST(Space, CountsWhatRulesRuleOut) {
  const SearchSpace space = make_space(small_llama(), small_plan(12), small_axes());
  RuleCounts counts = no_counts(space);
  Plan plan = space.base;
  Choice choice(space.axes.size(), 0);
  std::int64_t visited = 0, out = 0;
  std::set<std::int64_t> seen;
  walk(space, plan, choice, 0, space.axes.size(), counts, [&] {
    ++visited;
    EXPECT_TRUE(seen.insert(space.index_of(choice)).second);
  });
  for (const auto& axis : counts)
    for (const std::int64_t n : axis) out += n;
  EXPECT_GT(out, 0);
  EXPECT_EQ(visited + out, space.size());
}

TEST(Space, TriesPartsOfANodeThenWholeNodes) {
  Plan plan = small_plan(12, 3);
  const SearchSpace space = make_space(small_llama(), plan, {});
  const Axis& gpus = axis_named(space, "gpus");
  EXPECT_THAT(gpus.values, ElementsAre("1", "2", "4", "8", "12"));
  gpus.apply(plan, 1);
  EXPECT_EQ(plan.cluster.nodes, 1);
  EXPECT_EQ(plan.cluster.gpus_per_node, 2);
  gpus.apply(plan, 4);
  EXPECT_EQ(plan.cluster.nodes, 3);
  EXPECT_EQ(plan.cluster.gpus_per_node, 4);
}

TEST(Space, RefusesGpusThatTheClusterDoesNotHave) {
  AxisValues values;
  values.gpus = {16};
  EXPECT_THAT(error_text([&] { make_space(small_llama(), small_plan(12, 2), values); }),
              HasSubstr("--gpu-counts and --cluster: contradict each other: 16 GPUs of 8"));
  values.gpus = {6};
  EXPECT_THAT(error_text([&] { make_space(small_llama(), small_plan(12, 2), values); }),
              HasSubstr("6 GPUs do not fill nodes of 4"));
}

TEST(Space, KeepsTheJobsOwnValuesAmongTheOthers) {
  Plan plan = small_plan(12);
  plan.workload.micro_batch = 3;
  plan.framework.deepspeed.zero.reduce_bucket_size = 123'456'789;
  const SearchSpace space = make_space(small_llama(), plan, {});
  EXPECT_THAT(axis_named(space, "micro_batch").values, ::testing::Contains("3"));
  EXPECT_THAT(axis_named(space, "reduce_bucket_size").values, ::testing::Contains("123M"));
}

/// Where a GPU's part of a sequence is longer than the network is wide; not under DDP, where
/// PyTorch stops.
TEST(Space, TriesFeedForwardsInPartsOfLongSequences) {
  const auto has_tiles = [](const SearchSpace& space) {
    return std::ranges::any_of(space.axes, [](const Axis& a) { return a.name == "mlp_tiles"; });
  };
  Plan plan = small_plan(12);
  EXPECT_FALSE(has_tiles(make_space(small_llama(), plan, {})));
  plan.workload.sequence_length = 5000;
  const SearchSpace space = make_space(small_llama(), plan, {});
  const Axis& tiles = axis_named(space, "mlp_tiles");
  EXPECT_THAT(tiles.values, ElementsAre("0", "5"));
  tiles.apply(plan, 1);
  EXPECT_EQ(plan.mlp_tiles, 5);
  EXPECT_FALSE(tiles.rules.front().rules_out(plan, 1));
  plan.checkpointing = Checkpointing::selective;
  EXPECT_TRUE(tiles.rules.front().rules_out(plan, 1));
  AxisValues values;
  values.frameworks = {FrameworkKind::ddp};
  plan.mlp_tiles = 0;
  EXPECT_FALSE(has_tiles(make_space(small_llama(), plan, values)));
  values.mlp_tiles = {2, 4};
  EXPECT_TRUE(has_tiles(make_space(small_llama(), plan, values)));
}

TEST(Space, GivesEveryFrameworkThePrecisionItCanHave) {
  AxisValues values;
  values.frameworks = {FrameworkKind::deepspeed, FrameworkKind::fsdp2};
  const SearchSpace space = make_space(small_llama(), small_plan(12), values);
  EXPECT_THAT(axis_named(space, "precision").values, ElementsAre("bf16-master", "bf16-autocast"));
}

TEST(Space, AsksForDeepSpeedWhereStagesAreAskedFor) {
  AxisValues values;
  values.frameworks = {FrameworkKind::ddp};
  values.zero_stages = {2};
  EXPECT_THAT(error_text([&] { make_space(small_llama(), small_plan(12), values); }),
              HasSubstr("--zero-stages and --frameworks: contradict each other"));
}

}  // namespace
}  // namespace shardplan
