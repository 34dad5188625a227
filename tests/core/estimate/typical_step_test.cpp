// Samples of several lengths: the longest batch decides the peak, the typical one the time.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "estimate/estimate.h"
#include "json/reader.h"
#include "load/hardware.h"
#include "load/job.h"
#include "load/lengths.h"
#include "support/plan_testing.h"

namespace shardplan {
namespace {

TEST(SampleLengths, OfAFileAreItsOwn) {
  std::vector<std::int64_t> lengths(1000);
  std::iota(lengths.begin(), lengths.end(), 1);
  const SampleLengths found = lengths_of_samples(lengths);
  EXPECT_EQ(found.longest, 1000);
  EXPECT_DOUBLE_EQ(found.mean, 500.5);
  // The expected maximum of n draws from 1 to N is about N·n/(n + 1).
  for (const double draws : {1.0, 3.0, 9.0})
    EXPECT_NEAR(expected_longest(found, draws), 1000 * draws / (draws + 1), 2) << draws;
  const SampleLengths cut = cut_lengths(found, 250);
  EXPECT_EQ(cut.longest, 250);
  EXPECT_NEAR(cut.mean, (250 * 251 / 2.0 + 750 * 250) / 1000, 0.5);
}

TEST(SampleLengths, OfASummaryMeetIt) {
  const SampleLengths found = lengths_of_summary(900, 3100, 8192);
  EXPECT_NEAR(expected_longest(found, 1), 900, 1);
  EXPECT_EQ(found.longest, 8192);
  const double at95 =
      found.values[static_cast<std::size_t>(0.95 * static_cast<double>(found.values.size()))];
  EXPECT_NEAR(at95, 3100, 0.1 * 3100);
  double before = 0;
  for (const double draws : {1.0, 2.0, 8.0, 64.0}) {
    const double now = expected_longest(found, draws);
    EXPECT_GT(now, before);
    EXPECT_LE(now, 8192);
    before = now;
  }
  EXPECT_NEAR(expected_longest(lengths_of_summary(512, 512, 512), 8), 512, 1e-6);
}

Job job_of(const std::string& workload, const std::string& more = "") {
  static const HardwareCatalog kHardware = load_hardware_catalog();
  JobContext context;
  context.hardware = &kHardware;
  return load_job(
      Json::parse(
          R"({"model": "llama-3.2-1b", "cluster": "1xH100", "precision": "bf16-pure", "workload": {)" +
          workload + "}" + more + "}"),
      "job.json", context);
}

Estimate estimated(const Job& job) {
  return estimate(job.model, job.plan, Calibration{});
}

TEST(TypicalStep, PeakIsOfTheLongestBatchAndTimeOfTheTypicalOne) {
  const Estimate mixed =
      estimated(job_of(R"("micro_batch": 4, "lengths": {"mean": 500, "p95": 1400, "max": 4096})"));
  const Estimate longest = estimated(job_of(R"("micro_batch": 4, "sequence_length": 4096)"));
  EXPECT_EQ(mixed.allocated.point, longest.allocated.point);
  EXPECT_EQ(mixed.device.upper, longest.device.upper);
  ASSERT_TRUE(mixed.typical);
  EXPECT_GT(mixed.typical->tokens, 500);
  EXPECT_LT(mixed.typical->tokens, 4096);
  EXPECT_NEAR(mixed.typical->counted, 500.0 / static_cast<double>(mixed.typical->tokens), 1e-3);
  const Estimate typical = estimated(
      job_of(R"("micro_batch": 4, "sequence_length": )" + std::to_string(mixed.typical->tokens)));
  EXPECT_EQ(mixed.time.step_seconds, typical.time.step_seconds);
  EXPECT_EQ(mixed.typical->allocated, typical.allocated.point);
  EXPECT_NEAR(mixed.time.tokens_per_second, typical.time.tokens_per_second * mixed.typical->counted,
              1);
}

TEST(TypicalStep, FollowsTheBatch) {
  const auto tokens = [](const std::string& sizes) {
    const Job job = job_of(sizes + R"(, "lengths": "500,1400,4096")");
    return typical_step(job.plan).tokens;
  };
  const std::int64_t one = tokens(R"("micro_batch": 1)");
  EXPECT_NEAR(static_cast<double>(one), 500, 2);
  EXPECT_GT(tokens(R"("micro_batch": 8)"), tokens(R"("micro_batch": 2)"));
  // Samples are cut to the sequence length, and the longest batch is no longer.
  const Job cut =
      job_of(R"("micro_batch": 8, "sequence_length": 1024, "lengths": "500,1400,4096")");
  EXPECT_EQ(cut.plan.workload.sequence_length, 1024);
  EXPECT_LT(cut.plan.workload.lengths->mean, 500);
  // Nobody waits in one GPU; more of them wait for the longest of all.
  Plan more = job_of(R"("micro_batch": 2, "lengths": "500,1400,4096")").plan;
  const std::int64_t alone = typical_step(more).tokens;
  more.cluster.gpus_per_node = 8;
  const std::int64_t together = typical_step(more).tokens;
  EXPECT_GT(together, alone);
  more.workload.gradient_accumulation = 16;
  EXPECT_LT(typical_step(more).tokens, together);
  EXPECT_GT(typical_step(more).tokens, alone);
}

TEST(TypicalStep, PackedRowsAreFull) {
  const Estimate packed = estimated(job_of(
      R"("micro_batch": 4, "sequence_length": 2048, "lengths": "500,1400,4096", "packing": true)"));
  const Estimate full = estimated(job_of(R"("micro_batch": 4, "sequence_length": 2048)"));
  EXPECT_EQ(packed.allocated.point, full.allocated.point);
  EXPECT_EQ(packed.time.step_seconds, full.time.step_seconds);
  EXPECT_EQ(packed.typical->counted, 1);
}

std::string error_of(const std::string& workload) {
  try {
    job_of(workload);
  } catch (const InputError& e) {
    return e.what();
  }
  return "";
}

TEST(SampleLengths, AreReadWithClearErrors) {
  const auto has = [](const std::string& error, std::string_view part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  has(error_of(R"("lengths": {"mean": 900, "p95": 800, "max": 8192})"), "mean <= p95 <= max");
  has(error_of(R"("lengths": {"mean": 900, "max": 8192})"), "workload.lengths.p95");
  has(error_of(R"("lengths": {"mean": 900, "p95": 1000, "max": 2000, "men": 1})"), "men");
  has(error_of(R"("lengths": 900)"), "workload.lengths");
  has(error_of(R"("lengths": "no such file")"), "no such file");
  const auto path = std::filesystem::temp_directory_path() / "shardplan_lengths_test.txt";
  std::ofstream(path) << "12\n\n300\r\nx\n";
  has(error_of(R"("lengths": ")" + path.string() + "\""), "line 4");
  std::ofstream(path) << "12\n300\n40";
  EXPECT_EQ(job_of(R"("lengths": ")" + path.string() + "\"").plan.workload.sequence_length, 300);
  std::ofstream(path) << "";
  has(error_of(R"("lengths": ")" + path.string() + "\""), "has no lengths");
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace shardplan
