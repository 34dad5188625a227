#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "json/document.h"
#include "shardplan/shardplan.h"

namespace shardplan::api {
namespace {

constexpr const char* kJob = R"({"model": "gpt2", "cluster": "1xA100-40GB",
                                 "workload": {"micro_batch": 4, "sequence_length": 512}})";

ErrorParts error_of(const std::vector<Document>& job, const std::vector<Option>& options = {}) {
  try {
    estimate(job, options);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()), "");
    return error.parts();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(Api, EstimateHasTheNumbersOfItsJson) {
  const Estimate e = estimate({Document::text(kJob)});
  const Json json = Json::parse(e.json);
  EXPECT_TRUE(e.fits);
  EXPECT_EQ(e.limited_by, "");
  EXPECT_EQ(json["verdict"]["gpu"]["verdict"], "fits");
  EXPECT_EQ(e.gpu.verdict, Verdict::fits);
  EXPECT_EQ(e.parameters, 124439808);
  const Json& peak = json["gpu"]["peak"];
  EXPECT_EQ(e.device.least, peak["device"]["least"]);
  EXPECT_EQ(e.device.point, peak["device"]["point"]);
  EXPECT_EQ(e.device.upper, peak["device"]["upper"]);
  EXPECT_EQ(e.allocated.point, peak["allocated"]["point"]);
  EXPECT_EQ(e.reserved.upper, peak["reserved"]["upper"]);
  EXPECT_EQ(e.time.step_seconds, json["time"]["step_seconds"]);
  ASSERT_TRUE(e.time.error);
  EXPECT_EQ(e.time.error->largest, json["time"]["error"]["largest"]);
  EXPECT_EQ(e.peak_phase, json["gpu"]["peak_phase"]);
}

TEST(Api, PartsAddUpToThePeakAndTimesToTheStep) {
  const Estimate e = estimate({Document::text(kJob)});
  std::int64_t bytes = 0;
  for (const Part& part : e.parts) bytes += part.at_peak_bytes;
  EXPECT_EQ(bytes, e.device.point);
  const Time& t = e.time;
  EXPECT_NEAR(t.compute_seconds + t.exposed_communication_seconds + t.exposed_copy_seconds +
                  t.optimizer_seconds + t.bubble_seconds + t.idle_seconds,
              t.step_seconds, 1e-9);
  EXPECT_GT(t.step_seconds, 0);
}

TEST(Api, OptionsOverrideTheJob) {
  const Estimate as_written = estimate({Document::text(kJob)});
  const Estimate larger = estimate({Document::text(kJob)}, {{"micro_batch", "8"}});
  EXPECT_GT(larger.allocated.point, as_written.allocated.point);
}

TEST(Api, NotFittingIsAnAnswerWithWhatWouldChangeIt) {
  const Fit answer = fit("llama-2-7b", "4x24GB");
  EXPECT_FALSE(answer.estimate.fits);
  EXPECT_EQ(answer.estimate.limited_by, "gpu");
  EXPECT_NE(answer.estimate.gpu.verdict, Verdict::fits);
  ASSERT_FALSE(answer.fixes.empty());
  EXPECT_FALSE(answer.fixes.front().changes.empty());
  EXPECT_LT(answer.fixes.front().device_bytes, answer.estimate.device.point);
  EXPECT_EQ(Json::parse(answer.estimate.json)["fixes"].size(), answer.fixes.size());
}

TEST(Api, FilesAreReadByTheirPaths) {
  const std::string job = SHARDPLAN_SOURCE_DIR "/configs/jobs/llama-2-7b-zero3.json";
  EXPECT_EQ(estimate({job}).parameters, 6738415616);
}

TEST(Api, ErrorsSayWhereAndTheNearestSpelling) {
  const ErrorParts key = error_of({Document::text(
      R"({"model": "gpt2", "cluster": "1xA100-40GB", "precison": "fp32"})", "mine")});
  EXPECT_EQ(key.file, "<mine>");
  EXPECT_EQ(key.key, "precison");
  EXPECT_EQ(key.nearest, "precision");
  const ErrorParts option = error_of({Document::text(kJob)}, {{"micro_bach", "2"}});
  EXPECT_EQ(option.key, "--micro_bach");
  EXPECT_EQ(option.nearest, "--micro-batch");
  const ErrorParts json = error_of({Document::text("{\n \"model\": }")});
  EXPECT_EQ(json.line, 2);
}

TEST(Api, ErrorsComeOfEveryKind) {
  EXPECT_NE(error_of({"absent.json"}).message, "");
  EXPECT_NE(error_of({Document::text(kJob)}, {{"price_per_gpu_hour", "-1"}}).message, "");
  EXPECT_THROW(fit("llama-2-7b", "4xA100-40GB", {{"micro_batch", "many"}}), Error);
  EXPECT_THROW(fit(Document::text(R"({"schema": "shardplan.job/1"})"), "1xA100-40GB"), Error);
}

}  // namespace
}  // namespace shardplan::api
