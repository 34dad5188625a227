// `simulate` and `calibrate` as their users meet them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "json/document.h"
#include "support/subprocess.h"

namespace shardplan::trace_test {
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

/// Of tensors: what estimate says is allocated has the rests of their blocks too.
std::int64_t tensors_at_peak(const Json& estimate) {
  const std::set<std::string> others{"fragmentation", "cuda_context", "nccl"};
  std::int64_t sum = 0;
  for (const Json& part : estimate["gpu"]["breakdown"])
    if (!others.contains(part["category"].get<std::string>()))
      sum += part["at_peak_bytes"].get<std::int64_t>();
  return sum;
}

TEST(Trace, CountsLiveBytesUpToThePeakThatEstimateReports) {
  const TemporaryFolder folder;
  const std::string job = folder.file("job.json", kJob), path = folder.path("trace.json");
  ASSERT_EQ(shardplan({"simulate", job, "--trace", path}).exit_code, 0);
  const Json estimate = parse_json(shardplan({"estimate", job, "--format", "json"}).out, "stdout");
  const std::int64_t peak = tensors_at_peak(estimate);
  EXPECT_LE(peak, estimate["gpu"]["peak"]["allocated"]["point"].get<std::int64_t>());
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

struct TracedJob {
  const char* name;
  std::vector<std::string> phases;
};

/// Every kind of job: the phases are there, in order; spans of a track do not overlap; and what is
/// alive peaks where the estimate says.
TEST(Trace, IsOfJobsOfEveryKind) {
  const std::vector<TracedJob> jobs{
      {"llama-3.1-8b-inference", {"prefill", "decode"}},
      {"qwen2.5-1.5b-grpo", {"generation", "experience", "actor_training"}},
      {"opt-1.3b-ppo-zero3", {"generation", "experience", "actor_training", "critic_training"}},
      {"llama-3.2-1b-dpo", {"forward", "experience", "backward", "step"}}};
  const TemporaryFolder folder;
  for (const TracedJob& traced : jobs) {
    const std::string job =
        std::string(SHARDPLAN_SOURCE_DIR) + "/configs/jobs/" + traced.name + ".json";
    const std::string path = folder.path("trace.json");
    const Finished f = shardplan({"simulate", job, "--trace", path, "--format", "json"});
    ASSERT_EQ(f.exit_code, 0) << f.err;
    const Json estimate = parse_json(shardplan({"estimate", job, "--format", "json"}).out, "out");
    const auto peak = estimate["gpu"]["peak"]["allocated"]["point"].get<double>();
    const Json trace = nlohmann::ordered_json::parse(read_text_file(path));
    std::vector<std::string> phases;
    std::map<int, double> ends;
    double highest = 0;
    for (const Json& e : trace["traceEvents"]) {
      if (e["ph"] == "C") {
        double sum = 0;
        for (const Json& bytes : e["args"]) sum += bytes.get<double>();
        highest = std::max(highest, sum);
      }
      if (e["ph"] != "X") continue;
      const int track = e["tid"].get<int>();
      EXPECT_GE(e["ts"].get<double>(), ends[track] - 1e-3) << traced.name;
      ends[track] = e["ts"].get<double>() + e["dur"].get<double>();
      if (track == 4) phases.push_back(e["name"].get<std::string>());
    }
    EXPECT_EQ(phases, traced.phases) << traced.name;
    // The estimate counts the allocator's blocks where tensors grow bit by bit.
    EXPECT_NEAR(highest, peak, 0.01 * peak) << traced.name;
  }
}

TEST(Trace, HasEveryStageOfAPipelineThatDiffersAndItsBubble) {
  const TemporaryFolder folder;
  const std::string path = folder.path("trace.json");
  const Finished f =
      shardplan({"simulate", "--model", "llama-2-7b", "--cluster", "8xH100", "--framework",
                 "deepspeed", "--zero-stage", "1", "--pipeline-parallel", "4",
                 "--gradient-accumulation", "8", "--trace", path, "--format", "json"});
  ASSERT_EQ(f.exit_code, 0) << f.err;
  const Json simulation = parse_json(f.out, "stdout");
  EXPECT_EQ(simulation["ranks"][0]["name"], "rank 0, stage 0 of 4");
  const Json trace = nlohmann::ordered_json::parse(read_text_file(path));
  std::map<std::int64_t, double> bubbles;
  for (const Json& e : trace["traceEvents"])
    if (e["name"] == "waiting for other pipeline stages")
      bubbles[e["pid"].get<std::int64_t>()] = e["dur"].get<double>() / 1e6;
  ASSERT_EQ(bubbles.size(), simulation["ranks"].size());
  for (const Json& rank : simulation["ranks"])
    EXPECT_NEAR(bubbles[rank["rank"].get<std::int64_t>()], rank["bubble_seconds"].get<double>(),
                1e-9);
}

TEST(Simulate, OfGenerationTakesAsLongAsEstimated) {
  // 32 new tokens are all run: nothing is left out.
  const std::vector<std::string> job{"--model",      "llama-2-7b", "--cluster",       "1xH100",
                                     "--framework",  "single",     "--kind",          "inference",
                                     "--batch",      "4",          "--prompt-length", "512",
                                     "--new-tokens", "32",         "--format",        "json"};
  const auto of = [&](const char* command) {
    std::vector<std::string> arguments{command};
    arguments.insert(arguments.end(), job.begin(), job.end());
    const Finished f = shardplan(arguments);
    EXPECT_EQ(f.exit_code, 0) << f.err;
    return parse_json(f.out, command);
  };
  const double estimated = of("estimate")["time"]["step_seconds"].get<double>();
  const Json ranks = of("simulate")["ranks"];
  EXPECT_EQ(ranks[0]["runs"], "the prompt and 32 new tokens");
  EXPECT_NEAR(ranks[0]["step_seconds"].get<double>(), estimated, 0.03 * estimated);
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
}  // namespace shardplan::trace_test
