// `simulate` and `calibrate` as their users meet them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "json/document.h"
#include "support/subprocess.h"

namespace shardplan {
namespace {

using ::testing::HasSubstr;

Finished shardplan(const std::vector<std::string>& arguments) {
  return run_program(SHARDPLAN_PROGRAM, arguments, "");
}

constexpr const char* kJob = R"({"model": "gpt2", "cluster": "4xH200", "precision": "bf16-autocast",
  "framework": {"name": "fsdp2", "reshard_after_forward": true},
  "workload": {"micro_batch": 4, "sequence_length": 1024}})";

TEST(Trace, HasATrackForEveryStreamAndEndsWithTheStep) {
  const TemporaryFolder folder;
  const std::string job = folder.file("job.json", kJob), path = folder.path("trace.json");
  const Finished f = shardplan({"simulate", job, "--trace", path, "--format", "json"});
  ASSERT_EQ(f.exit_code, 0) << f.err;
  const double step = parse_json(f.out, "stdout")["ranks"][0]["step_seconds"].get<double>();
  const Json trace = nlohmann::ordered_json::parse(read_text_file(path));
  std::map<int, double> ends;
  for (const Json& e : trace["traceEvents"]) {
    if (e["ph"] != "X") continue;
    double& end = ends[e["tid"].get<int>()];
    EXPECT_GE(e["ts"].get<double>(), end - 1e-3) << "spans of a track overlap";
    end = e["ts"].get<double>() + e["dur"].get<double>();
    EXPECT_LE(end, step * 1e6 * (1 + 1e-9));
  }
  EXPECT_GE(ends.size(), 2U);
}

TEST(Trace, CountsLiveBytesUpToThePeakThatEstimateReports) {
  const TemporaryFolder folder;
  const std::string job = folder.file("job.json", kJob), path = folder.path("trace.json");
  ASSERT_EQ(shardplan({"simulate", job, "--trace", path}).exit_code, 0);
  const Json estimate = parse_json(shardplan({"estimate", job, "--format", "json"}).out, "stdout");
  const auto peak = estimate["gpu"]["peak"]["allocated"]["point"].get<std::int64_t>();
  std::int64_t highest = 0, marked = 0;
  const Json trace = nlohmann::ordered_json::parse(read_text_file(path));
  for (const Json& e : trace["traceEvents"]) {
    if (e["ph"] == "i") marked = e["args"]["bytes"].get<std::int64_t>();
    if (e["ph"] != "C") continue;
    std::int64_t sum = 0;
    for (const Json& bytes : e["args"]) sum += bytes.get<std::int64_t>();
    highest = std::max(highest, sum);
  }
  EXPECT_EQ(highest, peak);
  EXPECT_EQ(marked, peak);
}

TEST(Simulate, RefusesRanksThatAreNotThere) {
  const TemporaryFolder folder;
  const Finished f = shardplan({"simulate", folder.file("job.json", kJob), "--rank", "4"});
  EXPECT_EQ(f.exit_code, 3);
  EXPECT_THAT(f.err, HasSubstr("there is no rank 4; expected 0 to 3"));
}

TEST(CalibrationOption, RefusesOneOfAnotherGpuUnlessAskedFor) {
  const TemporaryFolder folder;
  const std::string file =
      std::string(SHARDPLAN_SOURCE_DIR) + "/data/calibration/h200-pytorch-2.11.json";
  const std::vector<std::string> question{"estimate",    "--model",       "gpt2", "--cluster",
                                          "4xA100-40GB", "--calibration", file};
  const Finished refused = shardplan(question);
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("fitted on Hopper GPUs, but A100-SXM4-40GB is Ampere"));
  std::vector<std::string> asked = question;
  asked.push_back("--any-gpu");
  EXPECT_EQ(shardplan(asked).exit_code, 0);
}

TEST(Calibrate, RefusesRecordsOfTwoGpus) {
  const TemporaryFolder folder;
  const auto record = [&](const char* name, const char* gpu) {
    return folder.file(
        name, std::string(R"({"schema": "shardplan.rates/1", "environment": {"gpu": ")") + gpu +
                  R"("}, "rates": [{"kind": "memory", "form": "add",
        "dtype": "float32", "elements": 1000, "bytes": 12000, "seconds": 1e-6}]})");
  };
  const Finished f = shardplan(
      {"calibrate", record("a.json", "NVIDIA H200"), record("b.json", "NVIDIA A100-SXM4-40GB")});
  EXPECT_EQ(f.exit_code, 3);
  EXPECT_THAT(f.err, HasSubstr("records of one kind of GPU"));
}

}  // namespace
}  // namespace shardplan
