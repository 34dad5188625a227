// `shardplan anchor`, and the questions that take what it wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "json/document.h"
#include "support/subprocess.h"

namespace shardplan::anchor_cli_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Finished shardplan(const std::vector<std::string>& arguments) {
  return run_program(SHARDPLAN_PROGRAM, arguments);
}

std::vector<std::string> job_on(const std::string& cluster) {
  return {"llama-3.2-1b", cluster, "--framework", "fsdp2", "--sequence-length", "2048"};
}

std::vector<std::string> with(std::vector<std::string> first,
                              const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

Json estimate(const std::string& cluster, const std::vector<std::string>& more = {}) {
  const Finished f =
      shardplan(with(with({"estimate"}, job_on(cluster)), with({"--format", "json"}, more)));
  EXPECT_EQ(f.exit_code, 0) << f.err;
  return parse_json(f.out, "stdout");
}

double seconds_of(const Json& estimate) {
  return estimate["time"]["step_seconds"].get<double>();
}

double reserved_of(const Json& estimate, const char* which) {
  return estimate["gpu"]["peak"]["reserved"][which].get<double>();
}

/// torchtitan's lines of a step that took so long.
std::string log_of(double seconds, double gibibytes, std::int64_t tokens_of_a_gpu = 2048) {
  const auto rate = static_cast<std::int64_t>(static_cast<double>(tokens_of_a_gpu) / seconds);
  std::string text;
  for (int step = 10; step <= 40; step += 10)
    text += fmt::format("step: {}  loss: 8.9  memory: {:.2f}GiB(30.00%)  tps: {}  mfu: 30.00%\n",
                        step, gibibytes, rate);
  return text;
}

constexpr const char* kOther = "4xL40S";  // nothing was fitted on such a GPU

TEST(Anchor, BringsTheStepOfAnUnknownGpuToWhatItTook) {
  const TemporaryFolder folder;
  const double before = seconds_of(estimate(kOther));
  const std::string file = folder.path("anchor.json");
  const Finished f = shardplan(with({"anchor", folder.file("run.log", log_of(1.4 * before, 1))},
                                    with(job_on(kOther), {"-o", file})));
  ASSERT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.out, AllOf(HasSubstr("a torchtitan log, median of 2 entries, the first 2 left out"),
                           HasSubstr("% longer"), HasSubstr("times as long for kernels")));
  const double after = seconds_of(estimate(kOther, {"--machine", file}));
  EXPECT_GT(after, 1.2 * before);
  EXPECT_LT(after, 1.4 * before);
  // Less memory than estimated is luck: bounds stay.
  EXPECT_EQ(read_json_file(file)["anchor"]["memory_over"], 1.0);
}

TEST(Anchor, LeavesMoreToTheJobOnTheGpuThatWasFitted) {
  const TemporaryFolder folder;
  const auto corrected = [&](const std::string& cluster) {
    const double before = seconds_of(estimate(cluster));
    const std::string file = folder.path("anchor.json");
    EXPECT_EQ(shardplan(with({"anchor", folder.file("run.log", log_of(1.4 * before, 1))},
                             with(job_on(cluster), {"-o", file})))
                  .exit_code,
              0);
    return seconds_of(estimate(cluster, {"--machine", file})) / before;
  };
  const double fitted = corrected("4xH200");
  EXPECT_GT(fitted, 1.0);
  EXPECT_LT(fitted, corrected(kOther));
}

TEST(Anchor, RaisesBoundsToWhatWasMeasuredAndNoEstimate) {
  const TemporaryFolder folder;
  const Json before = estimate(kOther);
  const double upper = reserved_of(before, "upper") / (1 << 30);
  const std::string file = folder.path("anchor.json");
  const double measured = 1.2 * upper;
  ASSERT_EQ(shardplan(with({"anchor", folder.file("run.log", log_of(seconds_of(before), measured))},
                           with(job_on(kOther), {"-o", file})))
                .exit_code,
            0);
  const Json after = estimate(kOther, {"--machine", file});
  EXPECT_NEAR(reserved_of(after, "upper") / (1 << 30), measured, 0.01);
  EXPECT_EQ(reserved_of(after, "point"), reserved_of(before, "point"));
}

TEST(Anchor, IsShownInTheAnswersThatItCorrects) {
  const TemporaryFolder folder;
  const std::string file = folder.path("anchor.json");
  const double before = seconds_of(estimate(kOther));
  ASSERT_EQ(shardplan(with({"anchor", folder.file("run.log", log_of(1.4 * before, 1))},
                           with(job_on(kOther), {"-o", file})))
                .exit_code,
            0);
  for (const char* command : {"fit", "estimate"}) {
    const Finished f = shardplan(with({command}, with(job_on(kOther), {"--machine", file})));
    EXPECT_THAT(f.out, AllOf(HasSubstr("anchored"), HasSubstr("run.log"))) << f.err;
  }
  const Finished other = shardplan(with({"estimate"}, with(job_on("4xH200"), {"--machine", file})));
  EXPECT_EQ(other.exit_code, 3);
  EXPECT_THAT(other.err, HasSubstr("but this job is on H200"));
}

TEST(Anchor, KeepsTheProbeThatItStartsFrom) {
  const TemporaryFolder folder;
  const std::string probe = folder.file(
      "probe.json", R"({"schema": "shardplan.machine/1", "python_call_seconds": 2e-6})");
  const std::string file = folder.path("anchor.json");
  const std::string log = folder.file("run.log", log_of(0.5, 1));
  ASSERT_EQ(shardplan(with({"anchor", log}, with(job_on(kOther), {"--machine", probe, "-o", file})))
                .exit_code,
            0);
  EXPECT_EQ(read_json_file(file)["python_call_seconds"], 2e-6);
  const Finished again =
      shardplan(with({"anchor", log}, with(job_on(kOther), {"--machine", file})));
  EXPECT_EQ(again.exit_code, 3);
  EXPECT_THAT(again.err, HasSubstr("has an anchor already"));
}

TEST(Anchor, TakesARecordWithItsOwnJob) {
  const std::string record = SHARDPLAN_SOURCE_DIR
      "/data/measurements/training/deepspeed/"
      "h100-2x-hf-z3-llama-3.2-3b-bf16-offload-all-ckpt-b2-s2048.json";
  const Finished f = shardplan({"anchor", record});
  EXPECT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(f.out, AllOf(HasSubstr("a record"), HasSubstr("the optimizer on the CPU"),
                           HasSubstr("taken from the GPU")));
  const Finished both = shardplan({"anchor", record, "llama-3.2-3b", "2xH100"});
  EXPECT_EQ(both.exit_code, 3);
  EXPECT_THAT(both.err, HasSubstr("a record holds its own job"));
}

TEST(Anchor, RefusesWhatTellsNoStep) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& text, const std::vector<std::string>& job) {
    const Finished f = shardplan(with({"anchor", folder.file("run.log", text)}, job));
    EXPECT_EQ(f.exit_code, 3);
    return f.err;
  };
  EXPECT_THAT(refused("", job_on(kOther)), HasSubstr("is empty"));
  EXPECT_THAT(refused("Traceback\n", job_on(kOther)),
              AllOf(HasSubstr("no step's time"), HasSubstr("CurrSamplesPerSec")));
  EXPECT_THAT(refused(log_of(1, 1), {}), HasSubstr("does not say what its job was"));
  EXPECT_THAT(refused(R"({"measured": {"phases": {"model": 1}}, "job": {}})", {}),
              HasSubstr("run.log"));
}

TEST(MachineOption, RefusesAnAnchorThatItCannotRead) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& anchor) {
    const Finished f = shardplan(with(
        {"estimate"},
        with(job_on(kOther),
             {"--machine", folder.file("m.json", R"({"schema": "shardplan.machine/1", "anchor": )" +
                                                     anchor + "}")})));
    EXPECT_EQ(f.exit_code, 3);
    return f.err;
  };
  EXPECT_THAT(refused("{}"), HasSubstr("anchor.factors"));
  EXPECT_THAT(refused(R"({"factors": {"kernel": 1.1}})"), HasSubstr("kernels"));
  EXPECT_THAT(refused(R"({"factors": {"kernels": 0}})"), HasSubstr("anchor.factors.kernels"));
  EXPECT_THAT(refused(R"({"factors": {}, "gpu": "L40S-48GB", "calibration": "mine"})"),
              HasSubstr("corrects 'mine'"));
}

}  // namespace
}  // namespace shardplan::anchor_cli_test
