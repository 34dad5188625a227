// A hundred iterations whose answers end by themselves.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "estimate/estimate.h"
#include "estimate/rlhf.h"
#include "load/calibration.h"
#include "load/hardware.h"
#include "load/job.h"

namespace shardplan::iterations_test {
namespace {

Estimate estimated(std::int64_t answer, std::int64_t longest, const Json& more = Json::object(),
                   const char* cluster = "1xH200") {
  static const HardwareCatalog hardware = load_hardware_catalog();
  static const Calibration calibration = load_calibration();
  Json job{{"model", "qwen2.5-1.5b"},
           {"cluster", cluster},
           {"framework", "single"},
           {"precision", "bf16-pure"},
           {"checkpointing", "full"},
           {"workload", Json{{"kind", "rlhf"},
                             {"algorithm", "grpo"},
                             {"micro_batch", 4},
                             {"gradient_accumulation", 4},
                             {"prompt_length", 256},
                             {"new_tokens", answer},
                             {"reference", "none"},
                             {"rollout", Json{{"placement", "separate"}, {"gpus", 1}}}}}};
  if (longest > 0) job["workload"]["rollout"]["longest_answer"] = longest;
  job["workload"].update(more);
  const Job loaded = load_job(job, "job.json", {.hardware = &hardware, .directory = ""});
  return estimate_rlhf(*loaded.rlhf, calibration);
}

TEST(Iterations, NeedWhatTheLongestAnswerNeeds) {
  const Estimate mean = estimated(512, 0), differ = estimated(512, 2048);
  const Estimate longest = estimated(2048, 0);
  EXPECT_GT(differ.allocated.point, mean.allocated.point);
  EXPECT_EQ(differ.allocated.point, longest.allocated.point);
  EXPECT_GE(differ.device.upper, longest.device.upper);
  EXPECT_LT(differ.time.step_seconds, longest.time.step_seconds);
}

TEST(Iterations, HoldMoreThanIfAllWereAlike) {
  EXPECT_FALSE(estimated(512, 0).iterations);
  const Estimate e = estimated(512, 2048);
  ASSERT_TRUE(e.iterations);
  EXPECT_EQ(e.iterations->count, 100);
  EXPECT_LT(e.iterations->shortest, e.iterations->longest);
  EXPECT_EQ(e.iterations->longest, 2048);
  EXPECT_GT(e.iterations->reserved, e.iterations->alike);
  EXPECT_EQ(e.reserved.point, e.iterations->reserved);
}

/// A smaller GPU gets cached segments back in between.
TEST(Iterations, HoldNoMoreThanTheGpuHas) {
  const Estimate e = estimated(512, 2048, Json::object(), "1xH100-80GB");
  ASSERT_TRUE(e.iterations);
  EXPECT_GT(e.iterations->reserved, e.usable_bytes);
  EXPECT_LT(e.reserved.point, e.usable_bytes);
  EXPECT_TRUE(e.verdict.fits);
}

// A trainer fills such rows whatever the answers are.
TEST(Iterations, AreAlikeWhereRowsAreBudgetsOfTokens) {
  EXPECT_FALSE(estimated(512, 2048, {{"token_budget", 8192}}).iterations);
}

}  // namespace
}  // namespace shardplan::iterations_test
