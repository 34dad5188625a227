// The search against a look at every plan of the space.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/diagnostic.h"
#include "questions/search/bounds.h"
#include "questions/search/reasons.h"
#include "questions/search/tally.h"
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
std::vector<Looked> all_that_fit(const ModelVariants& models, const SearchSpace& space,
                                 const Goal& goal) {
  const Calibration calibration = load_calibration();
  std::vector<Looked> all;
  for (std::int64_t i = 0; i < space.size(); ++i) {
    const Choice choice = space.choice_at(i);
    if (!allowed(space, choice)) continue;
    const Plan plan = space.plan_of(choice);
    const Estimate e = estimate(models.of(plan), plan, calibration);
    if (!e.verdict.fits || e.time.step_seconds > longest_step(plan, goal)) continue;
    const std::int64_t overhead = e.breakdown[index_of(Category::cuda_context)].at_peak +
                                  e.breakdown[index_of(Category::nccl)].at_peak;
    all.push_back({i, score_of(plan, e.time.step_seconds, live_peak(e) + overhead)});
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

TEST(Search, FindsTheSameAmongDegrees) {
  const Model model = small_megatron_llama();
  AxisValues values = few_degrees();
  values.global_batch = 64;
  for (const Objective objective : {Objective::throughput, Objective::memory, Objective::gpus}) {
    const SearchSpace space = make_space(model, megatron_plan(8), values);
    const Goal goal{.objective = objective};
    const SearchResult r = search(model, space, goal, load_calibration());
    EXPECT_EQ(indices_of(r), front_of(all_that_fit(model, space, goal), objective));
    EXPECT_EQ(ruled_out(r) + static_cast<std::int64_t>(r.front.size()), space.size());
    ASSERT_FALSE(r.front.empty());
    for (const Found& f : r.front) {
      const Parallel& p = f.plan.parallel;
      EXPECT_EQ(f.plan.data_ranks() * p.tensor * p.pipeline * p.context, f.plan.cluster.world());
      EXPECT_EQ(f.plan.samples_at_once() * f.plan.workload.gradient_accumulation, 64);
    }
  }
}

TEST(Search, FindsTheSameAmongFrameworksThatBuildOtherNetworks) {
  const Model model = small_llama();
  const Plan plan = small_plan(10);
  AxisValues values = small_axes();
  values.frameworks = {FrameworkKind::deepspeed, FrameworkKind::fsdp2, FrameworkKind::megatron};
  values.tensors = {1, 2, 4};
  values.pipelines = {1, 2};
  values.reduce_buckets = values.prefetch_buckets = values.persistence_thresholds = {1'000'000};
  const SearchSpace space = make_space(model, plan, values);
  const ModelVariants models(model, plan, space, [](const BuildOptions& options) {
    return model_of(kSmallLlama, options);
  });
  EXPECT_EQ(&models.of(plan), &model);
  Plan megatron = plan;
  megatron.framework.kind = FrameworkKind::megatron;
  EXPECT_NE(&models.of(megatron), &model);
  const Goal goal;
  const SearchResult r = search(models, space, goal, load_calibration());
  EXPECT_EQ(indices_of(r), front_of(all_that_fit(models, space, goal), goal.objective));
  EXPECT_EQ(ruled_out(r) + static_cast<std::int64_t>(r.front.size()), space.size());
}

/// GPT-2 has no tensor-parallel plan in transformers, which no rule of an axis knows.
TEST(Search, CountsWhatTheFrameworkRefusesAndThrowsWhereItRefusesAll) {
  const Model model = model_of(R"({"model_type": "gpt2", "n_embd": 256, "n_layer": 4,
    "n_head": 4, "vocab_size": 5000})");
  AxisValues values = small_axes();
  values.tensors = {1, 2};
  const SearchSpace both = make_space(model, small_plan(12), values);
  const SearchResult r = search(model, both, {}, load_calibration());
  ASSERT_FALSE(r.front.empty());
  const auto refused = std::find_if(r.ruled_out.begin(), r.ruled_out.end(), [](const auto& rule) {
    return rule.sentence == sentence_of(RuledOutBy::refused);
  });
  ASSERT_NE(refused, r.ruled_out.end());
  EXPECT_GT(refused->count, 0);
  EXPECT_NO_THROW(other_choices(model, both, r.front.front(), load_calibration()));
  values.tensors = {2};
  const SearchSpace one = make_space(model, small_plan(12), values);
  EXPECT_THAT(error_text([&] { search(model, one, {}, load_calibration()); }),
              HasSubstr("gpt2 has no tensor-parallel plan"));
}

TEST(Search, NamesWhyNoDegreeIsLeft) {
  const Model model = small_megatron_llama();
  AxisValues values = few_degrees();
  values.pipelines = {3};
  const SearchSpace odd = make_space(model, megatron_plan(24), values);
  EXPECT_THAT(error_text([&] { search(model, odd, {}, load_calibration()); }),
              ::testing::AllOf(HasSubstr("--pipeline-degrees and --gpu-counts"),
                               HasSubstr("do not multiply to a divisor of the GPUs")));
  values = few_degrees();
  values.tensors = {8};
  values.contexts = values.pipelines = {1};
  values.gpus = {8};
  values.data = {4};
  const SearchSpace data = make_space(model, megatron_plan(24), values);
  EXPECT_THAT(error_text([&] { search(model, data, {}, load_calibration()); }),
              HasSubstr("--precisions and --data-degrees: contradict each other"));
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
  control.progress = [&](const SearchProgress& p) { stop = p.on_front > 0; };
  const SearchResult r = search(model, space, {}, load_calibration(), control);
  EXPECT_TRUE(r.interrupted);
  EXPECT_FALSE(r.front.empty());
  EXPECT_EQ(ruled_out(r) + static_cast<std::int64_t>(r.front.size()), space.size());
  EXPECT_THAT(r.ruled_out.back().sentence, HasSubstr("interrupted"));
}

TEST(Search, StopsBeforeItHasAnything) {
  const Model model = small_llama();
  const SearchSpace space = make_space(model, small_plan(12), small_axes());
  std::atomic<bool> stop{true};
  const SearchResult r = search(model, space, {}, load_calibration(), {.stop = &stop});
  EXPECT_TRUE(r.interrupted);
  EXPECT_TRUE(r.front.empty());
  EXPECT_EQ(ruled_out(r), space.size());
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
