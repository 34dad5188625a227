// Questions over core: the largest value that fits, what would help, the stages side by side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "questions/changes.h"
#include "questions/compare.h"
#include "questions/fixes.h"
#include "questions/largest.h"
#include "support/plan_testing.h"

namespace shardplan {
namespace {

Estimate verdict(bool fits) {
  Estimate e;
  e.verdict.fits = fits;
  return e;
}

std::optional<std::int64_t> largest_up_to(std::int64_t most, std::int64_t step,
                                          std::int64_t limit) {
  return largest_fitting(step, limit, [&](std::int64_t n) { return verdict(n <= most); }).value;
}

TEST(LargestFitting, FindsEveryThreshold) {
  for (std::int64_t most = 1; most <= 300; ++most) {
    EXPECT_EQ(largest_up_to(most, 1, 1000), most);
    EXPECT_EQ(largest_up_to(most, 16, 1600),
              most < 16 ? std::nullopt : std::optional(most / 16 * 16));
  }
}

TEST(LargestFitting, SaysWhenNothingOrEverythingFits) {
  const auto nothing = largest_fitting(1, 100, [](std::int64_t) { return verdict(false); });
  EXPECT_FALSE(nothing.value);
  EXPECT_TRUE(nothing.beyond);
  EXPECT_FALSE(nothing.at_limit);
  for (const std::int64_t limit : {1, 2, 3, 100, 127, 128}) {
    const auto all = largest_fitting(1, limit, [](std::int64_t) { return verdict(true); });
    EXPECT_EQ(all.value, limit);
    EXPECT_TRUE(all.at_limit);
    EXPECT_FALSE(all.beyond);
  }
}

TEST(LargestFitting, AsksAboutAsOftenAsTheLogarithm) {
  int asked = 0;
  largest_fitting(1, 1 << 20, [&](std::int64_t n) {
    ++asked;
    return verdict(n <= 777'777);
  });
  EXPECT_LE(asked, 42);
}

constexpr std::string_view kLlama = R"({"model_type": "llama", "hidden_size": 1024,
  "intermediate_size": 2816, "num_hidden_layers": 16, "num_attention_heads": 16,
  "vocab_size": 32000, "max_position_embeddings": 8192})";

Plan limited(int stage, std::int64_t ranks, double gib) {
  Plan plan = zero_plan(stage, "bf16-master", ranks);
  plan.cluster.gpu.capacity = plan.cluster.gpu.usable =
      Bytes(static_cast<std::int64_t>(gib * 1024 * 1024 * 1024));
  plan.workload.sequence_length = 1024;
  return plan;
}

TEST(LargestMicroBatch, IsTheLastThatFits) {
  const Model model = model_of(kLlama);
  Plan plan = limited(3, 4, 24);
  const LargestResult r = largest_micro_batch(model, plan, Calibration{});
  ASSERT_TRUE(r.value && r.at && r.beyond);
  EXPECT_GT(*r.value, 1);
  plan.workload.micro_batch = *r.value;
  EXPECT_TRUE(estimate(model, plan, Calibration{}).verdict.fits);
  ++plan.workload.micro_batch;
  EXPECT_FALSE(estimate(model, plan, Calibration{}).verdict.fits);
  EXPECT_EQ(r.beyond->device.point, estimate(model, plan, Calibration{}).device.point);
}

TEST(LargestMicroBatch, SaysWhatSurelyAndWhatProbablyFits) {
  const Model model = model_of(kLlama);
  Calibration wide;
  wide.margins = {{.regime = AllocatorRegime::steady, .reserved = 1.3},
                  {.regime = AllocatorRegime::streams, .reserved = 1.3}};
  wide.scarce = {0.98, 1.2, 1};
  Plan plan = limited(3, 4, 24);
  const LargestResult r = largest_micro_batch(model, plan, wide);
  ASSERT_TRUE(r.value && r.probably && r.at_probably);
  EXPECT_GT(*r.probably, *r.value);
  EXPECT_FALSE(r.at_probably->verdict.fits);
  EXPECT_LE(r.at_probably->device.point, r.at_probably->usable_bytes);
  plan.workload.micro_batch = *r.probably + 1;
  EXPECT_FALSE(probably_fits(estimate(model, plan, wide).verdict));
}

TEST(LargestMicroBatch, KeepsToALimitOfTheStep) {
  const Model model = model_of(kLlama);
  Plan plan = limited(3, 4, 24);
  // Slow enough that the step follows the batch, not the host.
  plan.cluster.gpu.memory_bandwidth = 1e11;
  plan.cluster.gpu.peak[PeakRate::bf16] = 1e13;
  plan.cluster.gpu.peak[PeakRate::fp32] = 1e12;
  const LargestResult free = largest_micro_batch(model, plan, Calibration{});
  ASSERT_TRUE(free.value);
  Plan one = plan;
  one.workload.micro_batch = 1;
  const double half =
      0.5 * (estimate(model, one, Calibration{}).time.step_seconds + free.at->time.step_seconds);
  const LargestResult r = largest_micro_batch(model, plan, Calibration{}, half);
  ASSERT_TRUE(r.value && r.beyond);
  EXPECT_LT(*r.value, *free.value);
  EXPECT_LE(r.at->time.step_seconds, half);
  EXPECT_GT(r.beyond->time.step_seconds, half);
  EXPECT_TRUE(r.beyond->verdict.fits);
}

TEST(LargestSequence, StopsAtTheModelsPositions) {
  const Model model = model_of(kLlama);
  const LargestResult roomy = largest_sequence(model, limited(3, 4, 500), Calibration{});
  EXPECT_EQ(roomy.value, 8192);
  EXPECT_TRUE(roomy.at_limit);
  const LargestResult tight = largest_sequence(model, limited(3, 4, 8), Calibration{});
  ASSERT_TRUE(tight.value);
  EXPECT_LT(*tight.value, 8192);
  EXPECT_EQ(*tight.value % 128, 0);
}

TEST(LargestParameters, GrowsWithTheMemory) {
  const auto largest = [](double gib) {
    return largest_parameters(limited(3, 8, gib), Calibration{},
                              [](std::int64_t n) { return equal_tensors(1000, n / 1000); })
        .value.value_or(0);
  };
  EXPECT_GT(largest(16), 1'000'000'000);
  EXPECT_GT(largest(32), largest(16));
}

TEST(FewestGpus, IsTheFirstNumberThatFits) {
  const Model model = model_of(kLlama);
  Plan plan = limited(3, 8, 7);
  const LargestResult r = fewest_gpus(model, plan, Calibration{});
  ASSERT_TRUE(r.value && r.at);
  EXPECT_TRUE(r.at->verdict.fits);
  if (*r.value > 1) {
    plan.cluster.gpus_per_node = *r.value - 1;
    EXPECT_FALSE(estimate(model, plan, Calibration{}).verdict.fits);
  }
  EXPECT_FALSE(fewest_gpus(model, limited(3, 8, 0.1), Calibration{}).value);
}

/// Two nodes of 4, of which 4 GPUs share the layers two by two.
Plan divided(double gib) {
  Plan plan = limited(0, 4, gib);
  plan.framework = {};
  plan.framework.kind = FrameworkKind::megatron;
  plan.cluster.nodes = 2;
  plan.parallel.tensor = plan.parallel.pipeline = 2;
  plan.parallel.expert_tensor = 2;
  plan.parallel.sequence_parallel = true;
  plan.workload.gradient_accumulation = 4;
  return plan;
}

Model divided_model(std::string_view config) {
  return model_of(config, BuildOptions{.kernels = KernelSet::megatron});
}

TEST(FewestGpus, AreNoFewerThanThoseThatShareSamples) {
  const Model model = divided_model(R"({"model_type": "llama", "hidden_size": 4096,
    "intermediate_size": 11008, "num_hidden_layers": 16, "num_attention_heads": 32,
    "vocab_size": 32000})");
  const LargestResult alone = fewest_gpus(model, divided(80), Calibration{});
  EXPECT_EQ(alone.value, 4);  // fewer than 4 cannot hold the degrees
}

TEST(LargestSequence, IsOneThatItsRanksDivide) {
  Plan plan = divided(24);
  plan.parallel.context = 2;
  plan.parallel.pipeline = 1;
  const LargestResult r = largest_sequence(divided_model(kLlama), plan, Calibration{});
  ASSERT_TRUE(r.value);
  EXPECT_EQ(*r.value % 128, 0);
  EXPECT_GT(*r.value, 1024);
}

TEST(LargestParameters, AreOfAModelThatTheDegreesDivide) {
  const LargestResult r =
      largest_parameters(divided(24), Calibration{}, [](std::int64_t parameters) {
        const std::int64_t layers = std::max<std::int64_t>(1, parameters / 15'000'000);
        return divided_model(R"({"model_type": "llama", "hidden_size": 1024,
          "intermediate_size": 2816, "num_attention_heads": 16, "vocab_size": 32000,
          "num_hidden_layers": )" +
                             std::to_string(layers) + "}");
      });
  ASSERT_TRUE(r.value);
  EXPECT_GT(*r.value, 1'000'000'000);
}

TEST(FewestGpus, AreWholeShardGroups) {
  Plan plan = limited(0, 4, 40);
  plan.framework = {};
  plan.framework.kind = FrameworkKind::fsdp2;
  plan.framework.fsdp2.hybrid_shard_size = 4;
  const LargestResult r = fewest_gpus(model_of(kLlama), plan, Calibration{});
  ASSERT_TRUE(r.value);
  EXPECT_EQ(*r.value % 4, 0);
}

TEST(FindFixes, DividesMoreUnderMegatron) {
  const Model model = divided_model(kLlama);
  Plan plan = divided(2);
  plan.workload.micro_batch = 8;
  const Estimate now = estimate(model, plan, Calibration{});
  ASSERT_FALSE(now.verdict.fits);
  std::vector<std::string> texts;
  for (const Fix& fix : find_fixes(model, plan, now, Calibration{}))
    for (const Change& change : fix.changes) texts.push_back(change.what);
  EXPECT_THAT(texts, ::testing::Contains("each layer over 4 GPUs"));
  EXPECT_THAT(texts, ::testing::Contains("the layers over 4 stages"));
  for (const std::string& text : texts)
    EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("ZeRO")));
}

TEST(FindFixes, PutsWhatFitsFirstThenWhatSavesMost) {
  const Model model = model_of(kLlama);
  Plan plan = limited(1, 4, 10);
  plan.workload.micro_batch = 8;
  const Estimate now = estimate(model, plan, Calibration{});
  ASSERT_FALSE(now.verdict.fits);
  const std::vector<Fix> fixes = find_fixes(model, plan, now, Calibration{});
  ASSERT_GT(fixes.size(), 2U);
  std::size_t first_alone = fixes[0].changes.size() > 1 ? 1 : 0;
  EXPECT_TRUE(fixes[0].after.verdict.fits);
  for (std::size_t i = first_alone + 1; i < fixes.size(); ++i) {
    const Fix& a = fixes[i - 1];
    const Fix& b = fixes[i];
    EXPECT_EQ(b.changes.size(), 1U);
    EXPECT_GT(b.gpu_saved, 0);
    EXPECT_GE(a.after.verdict.fits, b.after.verdict.fits);
    if (b.after.verdict.fits) {
      EXPECT_LE(a.slowdown, b.slowdown);
    } else if (!a.after.verdict.fits) {
      EXPECT_GE(a.gpu_saved, b.gpu_saved);
    }
  }
}

TEST(FindFixes, CombinesChangesOnlyWhenNoneIsEnough) {
  const Model model = model_of(kLlama);
  Plan plan = limited(0, 4, 2.5);
  plan.workload.micro_batch = 8;
  const Estimate now = estimate(model, plan, Calibration{});
  const std::vector<Fix> fixes = find_fixes(model, plan, now, Calibration{});
  ASSERT_FALSE(fixes.empty());
  EXPECT_GT(fixes[0].changes.size(), 1U);
  std::vector<std::string> subjects;
  Plan changed = plan;
  for (const Change& c : fixes[0].changes) {
    EXPECT_THAT(subjects, ::testing::Not(::testing::Contains(c.subject)));
    subjects.push_back(c.subject);
    c.apply(changed);
  }
  EXPECT_EQ(estimate(model, changed, Calibration{}).device.point, fixes[0].after.device.point);
  EXPECT_LT(fixes[0].after.device.point, now.device.point);
}

/// With DeepSpeed's defaults the prefetcher keeps more over the turn than the distance does.
TEST(LighterChanges, HaveTheReuseDistanceWhereItDecides) {
  const Model model = model_of(kLlama);
  Plan plan = limited(3, 4, 24);
  ZeroOptions& zero = plan.framework.deepspeed.zero;
  const auto offered = [&] {
    return std::ranges::any_of(lighter_changes(model, plan),
                               [](const Change& change) { return change.subject == "reuse"; });
  };
  const auto saved = [&] {
    Plan none = plan;
    none.framework.deepspeed.zero.max_reuse_distance = 0;
    return estimate(model, plan, Calibration{}).device.point -
           estimate(model, none, Calibration{}).device.point;
  };
  EXPECT_FALSE(offered());
  EXPECT_EQ(saved(), 0);
  zero.max_live_parameters = 50'000'000;
  EXPECT_TRUE(offered());
  EXPECT_GT(saved(), 0);
  zero.prefetch_bucket_size = 0;
  EXPECT_TRUE(offered());
  EXPECT_GT(saved(), 0);
}

TEST(CompareStages, NeedLessGpuMemoryStageByStage) {
  const Model model = model_of(kLlama);
  const Plan plan = zero_plan(2, "bf16-master", 8);
  const std::vector<Alternative> all = compare_stages(model, plan, Calibration{});
  ASSERT_EQ(all.size(), 8U);
  int current = 0;
  for (const Alternative& a : all) current += a.is_current ? 1 : 0;
  EXPECT_EQ(current, 1);
  EXPECT_TRUE(all[2].is_current);
  for (std::size_t i = 1; i < 4; ++i)
    EXPECT_LT(model_states(all[i].estimate), model_states(all[i - 1].estimate)) << all[i].name;
  EXPECT_EQ(all[0].estimate.host_per_node.total(), 0);
  EXPECT_GT(all[4].estimate.host_per_node.total(), 0);
  EXPECT_GT(all[7].estimate.host_per_node.nvme, 0);
}

TEST(CompareStages, ShowsAJobOfAnotherFrameworkBesideThem) {
  const std::vector<Alternative> all = compare_stages(
      model_of(kLlama), plan_of(FrameworkKind::ddp, "bf16-autocast", 8), Calibration{});
  ASSERT_EQ(all.size(), 9U);
  EXPECT_TRUE(all[0].is_current);
  EXPECT_EQ(all[0].name, "as asked");
}

}  // namespace
}  // namespace shardplan
