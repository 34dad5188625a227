// What a measured step explains: which part takes how much of its error.
#include "questions/anchor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "estimate/estimate.h"
#include "load/calibration.h"
#include "load/hardware.h"

namespace shardplan::anchor_test {
namespace {

Job job_of(const Json& framework, const char* cluster, std::int64_t micro_batch = 8) {
  static const HardwareCatalog hardware = load_hardware_catalog();
  const Json json{{"model", "llama-3.2-1b"},
                  {"cluster", cluster},
                  {"framework", framework},
                  {"workload", {{"micro_batch", micro_batch}, {"sequence_length", 2048}}},
                  {"precision", "bf16-master"}};
  return load_job(json, "job", {&hardware, ""});
}

double seconds(const Job& job, const Calibration& calibration) {
  return estimate(job.model, job.plan, calibration, ReservedMemory::ratio).time.step_seconds;
}

TEST(ExplainedBy, NothingWhereThePredictionWasRight) {
  EXPECT_EQ(explained_by(1, {0.5, 0.3, 0.1, 0.1, 0, 0}, part_spread(true)), kAsFitted);
}

constexpr PartFactors kShares{0.6, 0.2, 0.1, 0.05, 0.05, 0};

/// Of an error that machines may have.
void expect_explained(double ratio, bool fitted) {
  const PartFactors factors = explained_by(ratio, kShares, part_spread(fitted));
  double explained = 0;
  for (std::size_t p = 0; p < kStepParts; ++p) {
    EXPECT_GE(std::log(factors[p]) * std::log(ratio), 0);
    explained += kShares[p] * std::log(factors[p]) / std::log(ratio);
  }
  EXPECT_GT(explained, 0.1);
  EXPECT_LT(explained, 1);
}

TEST(ExplainedBy, NeverMoreThanTheErrorAndMostOfItWherePartsDiffer) {
  for (const double ratio : {0.6, 0.95, 1.3, 2.0}) expect_explained(ratio, false);
  for (const double ratio : {0.88, 0.95, 1.05, 1.15}) expect_explained(ratio, true);
}

TEST(ExplainedBy, NothingOfWhatIsBeyondThreeDeviations) {
  const auto fitted = [](double ratio) { return explained_by(ratio, kShares, part_spread(true)); };
  EXPECT_EQ(fitted(1.3), fitted(2));
  EXPECT_EQ(fitted(0.8), fitted(0.6));
  EXPECT_NE(fitted(1.05), fitted(1.1));
}

TEST(ExplainedBy, LeavesAPartAloneThatTheStepDoesNotWaitFor) {
  const PartFactors factors = explained_by(1.5, {1, 0, 0, 0, 0, 0}, part_spread(false));
  EXPECT_GT(factors[index_of(StepPart::kernels)], 1.4);
  for (std::size_t p = 1; p < kStepParts; ++p) EXPECT_EQ(factors[p], 1);
}

TEST(PartShares, FollowWhatTheStepWaitsFor) {
  const Calibration calibration = load_calibration();
  const PartFactors large = part_shares(job_of("single", "1xH200"), calibration);
  EXPECT_GT(large[index_of(StepPart::kernels)], 0.9);
  const Json offload{
      {"name", "deepspeed"},
      {"ds_config",
       {{"bf16", {{"enabled", true}}},
        {"optimizer", {{"type", "AdamW"}}},
        {"zero_optimization", {{"stage", 2}, {"offload_optimizer", {{"device", "cpu"}}}}}}}};
  const PartFactors on_host = part_shares(job_of(offload, "2xH200", 1), calibration);
  EXPECT_GT(on_host[index_of(StepPart::host_optimizer)], 0.3);
  EXPECT_LT(on_host[index_of(StepPart::kernels)], 0.3);
}

TEST(ExplainedByStep, TakesDrivesThatNobodyTimedForTheMachinesOwn) {
  const Calibration calibration = load_calibration();
  const Json framework{{"name", "native"}, {"zero_stage", 2}, {"offload_optimizer", "nvme"}};
  const Job job = job_of(framework, "1xH200");
  EXPECT_GT(part_shares(job, calibration)[index_of(StepPart::drives)], 0.5);
  const double own = seconds(job, calibration);
  const PartFactors untold = explained_by_step(job, calibration, 2 * own);
  EXPECT_GT(untold[index_of(StepPart::drives)], 1.8);
  Job told = job;
  told.plan.cluster.nvme = Nvme{Bytes{std::int64_t{1} << 40}, 5e9, 5e9};
  EXPECT_LT(explained_by_step(told, calibration, 2 * own)[index_of(StepPart::drives)], 1.5);
}

TEST(SlowedDown, MakesAStepAsMuchLongerAsItsPartsAre) {
  const Calibration calibration = load_calibration();
  const Job job = job_of("ddp", "4xH200");
  Calibration slower = calibration;
  slower.time = slowed_down(calibration.time, {2, 2, 2, 2, 2, 2});
  EXPECT_NEAR(seconds(job, slower) / seconds(job, calibration), 2, 0.02);
}

TEST(AnchorOn, BoundsAreNoLowerThanWhatTheJobHad) {
  Calibration calibration = load_calibration();
  const Job job = job_of("single", "1xH200");
  const Estimate before = estimate(job.model, job.plan, calibration);
  const std::int64_t more = std::int64_t{9} << 30;
  calibration.anchor = anchor_on(
      job, calibration,
      {before.time.step_seconds, before.allocated.point + 1, {}, before.device.point + more},
      "run");
  const Estimate after = estimate(job.model, job.plan, calibration);
  EXPECT_GE(after.device.upper + 1, before.device.point + more);
  EXPECT_EQ(after.device.point, before.device.point);
  calibration.anchor = anchor_on(
      job, calibration, {before.time.step_seconds, {}, before.reserved.point / 2, {}}, "run");
  EXPECT_EQ(estimate(job.model, job.plan, calibration).device.upper, before.device.upper);
}

}  // namespace
}  // namespace shardplan::anchor_test
