// Wherever a time is printed, the largest error of such steps is beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "json/document.h"
#include "support/subprocess.h"

namespace shardplan::time_error_test {
namespace {

using ::testing::HasSubstr;

constexpr const char* kLog =
    "step: 10  loss: 8.9  memory: 9.00GiB(30.00%)  tps: 9000  mfu: 30.00%\n"
    "step: 20  loss: 8.9  memory: 9.00GiB(30.00%)  tps: 9000  mfu: 30.00%\n"
    "step: 30  loss: 8.9  memory: 9.00GiB(30.00%)  tps: 9000  mfu: 30.00%\n"
    "step: 40  loss: 8.9  memory: 9.00GiB(30.00%)  tps: 9000  mfu: 30.00%\n";

const std::vector<std::string> kJob{"llama-3.2-1b",      "4xH100", "--framework", "fsdp2",
                                    "--sequence-length", "2048"};

Finished shardplan(std::vector<std::string> command, const std::vector<std::string>& more = {}) {
  command.insert(command.end(), kJob.begin(), kJob.end());
  command.insert(command.end(), more.begin(), more.end());
  return run_program(SHARDPLAN_PROGRAM, command);
}

Json answer(const std::vector<std::string>& command) {
  const Finished f = shardplan(command, {"--format", "json"});
  EXPECT_EQ(f.exit_code, 0) << f.err;
  return parse_json(f.out, "stdout");
}

/// Lines are broken between words.
std::string joined(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

TEST(TimeError, IsInEveryText) {
  for (const char* command : {"estimate", "fit", "compare", "simulate"})
    EXPECT_THAT(joined(shardplan({command}).out), HasSubstr("measured fsdp2 steps")) << command;
}

TEST(TimeError, IsInTheJsonOfASimulatedStep) {
  const Json error = answer({"simulate"}).at("error");
  EXPECT_EQ(error, answer({"estimate"}).at("time").at("error"));
  EXPECT_EQ(error.at("kind"), "fsdp2");
}

TEST(TimeError, IsBesideWhatAnAnchorComparesAMeasuredStepWith) {
  const TemporaryFolder folder;
  const std::string log = folder.file("train.log", kLog);
  const Finished f = shardplan({"anchor", log});
  ASSERT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(joined(f.out), HasSubstr("Error of predicted times: "));
  EXPECT_THAT(joined(f.out), HasSubstr("measured fsdp2 steps"));
}

TEST(TimeError, IsToldOfEachKindOfStepThatASearchShows) {
  const Finished f = run_program(SHARDPLAN_PROGRAM,
                                 {"search", "llama-3.2-1b", "2xH100", "--frameworks", "fsdp2,ddp",
                                  "--micro-batches", "1", "--checkpointings", "none,full"});
  ASSERT_EQ(f.exit_code, 0) << f.err;
  EXPECT_THAT(joined(f.out), HasSubstr("measured fsdp2 steps"));
  EXPECT_THAT(joined(f.out), HasSubstr("measured ddp steps"));
}

TEST(TimeError, IsAColumnOfTablesOfMachinesAndOfJobs) {
  const Finished machines = run_program(
      SHARDPLAN_PROGRAM, {"table", "llama-3.2-1b", "--machines", "1xH100", "--format", "md"});
  ASSERT_EQ(machines.exit_code, 0) << machines.err;
  EXPECT_THAT(machines.out, HasSubstr("steps off by, at most"));
  const TemporaryFolder jobs, out;
  jobs.file("one.json", R"({"model": "gpt2", "cluster": "1xH100"})");
  jobs.file("two.json", R"({"modle": "gpt2"})");
  run_program(SHARDPLAN_PROGRAM, {"report", jobs.path(""), "-o", out.path("reports")});
  EXPECT_THAT(text_of(out.path("reports/index.html")), HasSubstr("steps off by, at most"));
  std::istringstream csv(text_of(out.path("reports/jobs.csv")));
  std::string head, row;
  std::getline(csv, head);
  EXPECT_THAT(head, HasSubstr("time_source,time_error_largest,error"));
  while (std::getline(csv, row))
    EXPECT_EQ(std::count(row.begin(), row.end(), ','), std::count(head.begin(), head.end(), ','))
        << row;
}

}  // namespace
}  // namespace shardplan::time_error_test
