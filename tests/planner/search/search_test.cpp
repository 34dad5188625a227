// The search against a look at every plan of the space.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/diagnostic.h"
#include "search_testing.h"
#include "support/error_of.h"

namespace shardplan {
namespace {

using ::testing::HasSubstr;

struct Looked {
  std::int64_t index = 0;
  Score score;
};

bool allowed(const SearchSpace& space, const Choice& choice) {
  Plan plan = space.base;
  for (std::size_t a = 0; a < space.axes.size(); ++a) {
    space.axes[a].apply(plan, choice[a]);
    for (const AxisRule& rule : space.axes[a].rules)
      if (rule.rules_out(plan, choice[a])) return false;
  }
  return true;
}

/// Every plan that fits, with the allocator simulated; no bound, no pruning.
std::vector<Looked> all_that_fit(const Model& model, const SearchSpace& space, const Goal& goal) {
  const Calibration calibration = load_calibration();
  std::vector<Looked> all;
  for (std::int64_t i = 0; i < space.size(); ++i) {
    const Choice choice = space.choice_at(i);
    if (!allowed(space, choice)) continue;
    const Plan plan = space.plan_of(choice);
    const Estimate e = estimate(model, plan, calibration);
    if (!e.verdict.fits || e.time.step_seconds > longest_step(plan, goal)) continue;
    const std::int64_t overhead = e.breakdown[index_of(Category::cuda_context)].at_peak +
                                  e.breakdown[index_of(Category::nccl)].at_peak;
    all.push_back({i, score_of(plan, e.time.step_seconds, e.allocated.point + overhead)});
  }
  return all;
}

std::vector<std::int64_t> front_of(const std::vector<Looked>& all, Objective objective) {
  std::vector<Looked> front;
  for (const Looked& a : all)
    if (std::none_of(all.begin(), all.end(), [&](const Looked& b) {
          return dominates(b.score, b.index, a.score, a.index);
        }))
      front.push_back(a);
  std::sort(front.begin(), front.end(), [&](const Looked& a, const Looked& b) {
    return better(objective, a.score, a.index, b.score, b.index);
  });
  std::vector<std::int64_t> indices;
  for (const Looked& f : front) indices.push_back(f.index);
  return indices;
}

std::vector<std::int64_t> indices_of(const SearchResult& r) {
  std::vector<std::int64_t> indices;
  for (const Found& f : r.front) indices.push_back(f.index);
  return indices;
}

std::int64_t ruled_out(const SearchResult& r) {
  return std::accumulate(r.ruled_out.begin(), r.ruled_out.end(), std::int64_t{0},
                         [](std::int64_t sum, const RuleCount& rule) { return sum + rule.count; });
}

struct Case {
  const char* name;
  double gib;
  Objective objective;
};

class AgainstLookingAtAll : public ::testing::TestWithParam<Case> {};

TEST_P(AgainstLookingAtAll, FindsTheSameWinnerAndTheSameFront) {
  const Case& c = GetParam();
  const Model model = small_llama();
  const SearchSpace space = make_space(model, small_plan(c.gib), small_axes());
  const Goal goal{.objective = c.objective};
  const SearchResult r = search(model, space, goal, load_calibration());
  const std::vector<Looked> all = all_that_fit(model, space, goal);
  EXPECT_EQ(indices_of(r), front_of(all, c.objective));
  ASSERT_FALSE(r.front.empty());
  const auto best = std::min_element(all.begin(), all.end(), [&](const auto& a, const auto& b) {
    return better(c.objective, a.score, a.index, b.score, b.index);
  });
  EXPECT_EQ(r.front.front().index, best->index);
  EXPECT_EQ(ruled_out(r) + static_cast<std::int64_t>(r.front.size()), space.size());
  EXPECT_LT(r.estimated, space.size() / 2);
}

INSTANTIATE_TEST_SUITE_P(Cases, AgainstLookingAtAll,
                         ::testing::Values(Case{"Fast24", 24, Objective::throughput},
                                           Case{"Fast12", 12, Objective::throughput},
                                           Case{"Fast6", 6, Objective::throughput},
                                           Case{"Cost12", 12, Objective::cost},
                                           Case{"Gpus12", 12, Objective::gpus},
                                           Case{"Memory12", 12, Objective::memory}),
                         [](const auto& test) { return test.param.name; });

TEST(Search, FindsTheSameUnderLimitsAndAGlobalBatch) {
  const Model model = small_llama();
  AxisValues values = small_axes();
  values.global_batch = 32;
  const SearchSpace space = make_space(model, small_plan(16), values);
  Goal goal;
  goal.objective = Objective::gpus;
  const SearchResult free = search(model, space, goal, load_calibration());
  ASSERT_FALSE(free.front.empty());
  EXPECT_EQ(free.front.front().plan.cluster.world(), 1);
  goal.limits.step_seconds = free.front.front().estimate.time.step_seconds * 0.6;
  const SearchResult r = search(model, space, goal, load_calibration());
  EXPECT_EQ(indices_of(r), front_of(all_that_fit(model, space, goal), goal.objective));
  ASSERT_FALSE(r.front.empty());
  EXPECT_GT(r.front.front().plan.cluster.world(), 1);
  for (const Found& f : r.front) {
    EXPECT_LE(f.estimate.time.step_seconds, *goal.limits.step_seconds);
    EXPECT_EQ(f.plan.cluster.world() * f.plan.workload.micro_batch *
                  f.plan.workload.gradient_accumulation,
              32);
  }
}

TEST(Search, FindsTheSameAmongFrameworks) {
  const Model model = small_llama();
  AxisValues values = small_axes();
  values.frameworks = {FrameworkKind::deepspeed, FrameworkKind::fsdp2, FrameworkKind::ddp};
  const SearchSpace space = make_space(model, small_plan(10), values);
  const Goal goal;
  const SearchResult r = search(model, space, goal, load_calibration());
  EXPECT_EQ(indices_of(r), front_of(all_that_fit(model, space, goal), goal.objective));
  EXPECT_EQ(ruled_out(r) + static_cast<std::int64_t>(r.front.size()), space.size());
}

TEST(Search, SaysTheSameWithAnyNumberOfThreads) {
  const Model model = small_llama();
  const SearchSpace space = make_space(model, small_plan(12), small_axes());
  const SearchResult one = search(model, space, {}, load_calibration(), {.threads = 1});
  for (const unsigned threads : {2U, 3U, 8U}) {
    const SearchResult many = search(model, space, {}, load_calibration(), {.threads = threads});
    EXPECT_EQ(indices_of(one), indices_of(many));
    EXPECT_EQ(one.estimated, many.estimated);
    EXPECT_EQ(one.simulated, many.simulated);
    ASSERT_EQ(one.ruled_out.size(), many.ruled_out.size());
    for (std::size_t i = 0; i < one.ruled_out.size(); ++i) {
      EXPECT_EQ(one.ruled_out[i].sentence, many.ruled_out[i].sentence);
      EXPECT_EQ(one.ruled_out[i].count, many.ruled_out[i].count);
    }
  }
}

TEST(Search, StopsWithWhatItHas) {
  const Model model = small_llama();
  const SearchSpace space = make_space(model, small_plan(12), small_axes());
  std::atomic<bool> stop{false};
  SearchControl control{.stop = &stop};
  control.progress = [&](const SearchProgress&) { stop = true; };  // after the first round
  const SearchResult r = search(model, space, {}, load_calibration(), control);
  EXPECT_TRUE(r.interrupted);
  EXPECT_FALSE(r.front.empty());
  EXPECT_EQ(ruled_out(r) + static_cast<std::int64_t>(r.front.size()), space.size());
  EXPECT_THAT(r.ruled_out.back().sentence, HasSubstr("interrupted"));
}

TEST(Search, TellsWhatWouldHelpWhenNothingFits) {
  const Model model = small_llama();
  AxisValues values = small_axes();
  values.zero_stages = {0};
  values.gpus = {4};
  const SearchSpace space = make_space(model, small_plan(5), values);
  const SearchResult r = search(model, space, {}, load_calibration());
  EXPECT_TRUE(r.front.empty());
  EXPECT_EQ(ruled_out(r), space.size());
  ASSERT_TRUE(r.near_miss);
  EXPECT_FALSE(r.near_miss->plan.estimate.verdict.fits);
  EXPECT_EQ(r.near_miss->plan.plan.workload.micro_batch, 1);
  ASSERT_FALSE(r.near_miss->fixes.empty());
  EXPECT_GT(r.near_miss->fixes.front().gpu_saved, 0);
}

TEST(Search, ShowsTheBestPlanBeyondImpossibleLimits) {
  const Model model = small_llama();
  const SearchSpace space = make_space(model, small_plan(12), small_axes());
  Goal goal;
  goal.limits.step_seconds = 1e-6;
  const SearchResult r = search(model, space, goal, load_calibration());
  EXPECT_TRUE(r.front.empty());
  ASSERT_TRUE(r.beyond_limits);
  EXPECT_TRUE(r.beyond_limits->estimate.verdict.fits);
}

TEST(Search, NamesThePairThatContradicts) {
  const Model model = small_llama();
  AxisValues values = small_axes();
  values.zero_stages = {1, 2};
  values.parameter_offloads = {OffloadDevice::cpu};
  const SearchSpace offload = make_space(model, small_plan(12), values);
  EXPECT_THAT(error_text([&] { search(model, offload, {}, load_calibration()); }),
              ::testing::AllOf(HasSubstr("--parameter-offloads and --frameworks/--zero-stages"),
                               HasSubstr("contradict each other"),
                               HasSubstr("parameters are offloaded at ZeRO stage 3")));
  values = small_axes();
  values.global_batch = 7;
  values.gpus = {2, 4};
  const SearchSpace batch = make_space(model, small_plan(12), values);
  EXPECT_THAT(error_text([&] { search(model, batch, {}, load_calibration()); }),
              HasSubstr("--micro-batches and --global-batch: contradict each other"));
}

}  // namespace
}  // namespace shardplan
