// Sweeps and folders: which jobs they mean, and what becomes of broken ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/batch/batch.h"
#include "report/render/render.h"
#include "report_testing.h"
#include "support/error_of.h"
#include "support/subprocess.h"

namespace shardplan::report {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kSweep = R"({
  "schema": "shardplan.sweep/1",
  "job": {"framework": "deepspeed", "workload": {"sequence_length": 512}, "checkpointing": "full"},
  "sweep": {"model": ["gpt2", "tinyllama-1.1b"], "gpus": ["2xH100", "4xA100-40GB"],
            "stage": [1, 3], "workload.micro_batch": [1]}
})";

std::vector<BatchJob> sweep(const std::string& text) {
  return sweep_jobs(parse_json(text, "sweep.json"), "sweep.json");
}

std::string sweep_error(const std::string& text) {
  return error_text([&] { sweep(text); });
}

std::vector<BatchOutcome> run(const std::vector<BatchJob>& jobs, unsigned threads = 2) {
  return run_batch(jobs, hardware(), load_calibration(), threads, [](std::size_t) {});
}

TEST(Sweep, IsTheProductOfItsAxesAndTheLastTurnsFastest) {
  std::vector<std::string> names;
  for (const BatchJob& job : sweep(kSweep)) names.push_back(job.name);
  EXPECT_THAT(names, ElementsAre("gpt2 2xH100 1 1", "gpt2 2xH100 3 1", "gpt2 4xA100-40GB 1 1",
                                 "gpt2 4xA100-40GB 3 1", "tinyllama-1.1b 2xH100 1 1",
                                 "tinyllama-1.1b 2xH100 3 1", "tinyllama-1.1b 4xA100-40GB 1 1",
                                 "tinyllama-1.1b 4xA100-40GB 3 1"));
}

TEST(Sweep, SetsFieldsOfTheJobItStartsFrom) {
  const Json job = job_document(sweep(kSweep)[1]);
  EXPECT_EQ(job.at("model"), "gpt2");
  EXPECT_EQ(job.at("cluster"), "2xH100");
  EXPECT_EQ(job.at("framework"), (Json{{"name", "deepspeed"}, {"zero_stage", 3}}));
  EXPECT_EQ(job.at("workload"), (Json{{"sequence_length", 512}, {"micro_batch", 1}}));
  EXPECT_EQ(job.at("checkpointing"), "full");
}

TEST(Sweep, NamesWhatIsWrongWithIt) {
  EXPECT_THAT(sweep_error(R"({"sweep": {}})"), HasSubstr("sweep.json: sweep: "));
  EXPECT_THAT(sweep_error(R"({"sweep": {"model": []}})"), HasSubstr("at least one value"));
  EXPECT_THAT(sweep_error(R"({"sweep": {"model": "7B"}})"),
              AllOf(HasSubstr("sweep.model"), HasSubstr("a list")));
  EXPECT_THAT(sweep_error(R"({"sweep": {"modle": ["7B"]}})"), HasSubstr("did you mean 'model'?"));
  EXPECT_THAT(sweep_error(R"({"swep": {"model": ["7B"]}})"), HasSubstr("did you mean 'sweep'?"));
  EXPECT_THAT(sweep_error(R"({"schema": "shardplan.job/1", "sweep": {"model": ["7B"]}})"),
              HasSubstr("shardplan.sweep/1"));
  std::string hundred = "[0";
  for (int i = 1; i < 100; ++i) hundred += "," + std::to_string(i);
  hundred += "]";
  EXPECT_THAT(sweep_error(R"({"sweep": {"model": )" + hundred + R"(, "gpus": )" + hundred +
                          R"(, "stage": )" + hundred + R"(, "precision": [1, 2]}})"),
              HasSubstr("too many jobs"));
}

TEST(Batch, GivesTheEstimatesOfItsJobs) {
  const std::vector<BatchOutcome> outcomes = run(sweep(kSweep));
  ASSERT_EQ(outcomes.size(), 8U);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Job job = load_batch_job(sweep(kSweep)[i], hardware());
    const Estimate alone = estimate(job.model, job.plan, load_calibration());
    EXPECT_EQ(outcomes[i].estimate->device.point, alone.device.point);
    EXPECT_EQ(outcomes[i].estimate->device.upper, alone.device.upper);
    EXPECT_EQ(outcomes[i].estimate->time.step_seconds, alone.time.step_seconds);
  }
}

TEST(Batch, IsTheSameWithAnyNumberOfThreads) {
  const std::vector<BatchJob> jobs = sweep(kSweep);
  const std::string one = batch_csv(run(jobs, 1));
  EXPECT_EQ(one, batch_csv(run(jobs, 4)));
  EXPECT_EQ(one, batch_csv(run(jobs, 64)));
}

TEST(Batch, GoesOnAfterABrokenJobAndListsIt) {
  const TemporaryFolder folder;
  folder.file("a.json", R"({"model": "gpt2", "cluster": "1xH100"})");
  folder.file("b.json", R"({"model": "gpt2")");
  folder.file("c.json", R"({"model": "gpt3,", "cluster": "1xH100"})");
  folder.file("d.json", R"({"model": "gpt2", "cluster": "2xH100"})");
  folder.file("notes.txt", "no job");
  const std::vector<BatchOutcome> outcomes = run(folder_jobs(folder.path("")));
  ASSERT_EQ(outcomes.size(), 4U);
  EXPECT_TRUE(outcomes[0].estimate);
  EXPECT_THAT(outcomes[1].error, HasSubstr("b.json: line 1"));
  EXPECT_THAT(outcomes[2].error, HasSubstr("c.json: model"));
  EXPECT_TRUE(outcomes[3].estimate);
  const std::string page =
      report_html(index_report(outcomes, "0.1.0", [](std::size_t) { return ""; }), Messages("en"));
  EXPECT_THAT(page, AllOf(HasSubstr("Which of 4 jobs fit?"), HasSubstr("b.json: line 1")));
}

TEST(BatchCsv, HasAFieldForEveryColumnInEveryRow) {
  std::vector<BatchJob> jobs = sweep(kSweep);
  jobs.resize(2);
  jobs[1].text = "{}";
  const std::string csv = batch_csv(run(jobs));
  std::istringstream lines(csv);
  std::string line;
  std::size_t rows = 0;
  while (std::getline(lines, line)) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 25) << line;
    ++rows;
  }
  EXPECT_EQ(rows, 3U);
}

TEST(FolderJobs, AreAllBelowInTheOrderOfTheirPaths) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path("sub"));
  folder.file("sub/b.json", "{}");
  folder.file("c.json", "{}");
  folder.file("a.json", "{}");
  std::vector<std::string> names;
  for (const BatchJob& job : folder_jobs(folder.path(""))) names.push_back(job.name);
  EXPECT_THAT(names, ElementsAre("a.json", "c.json", "sub/b.json"));
  const TemporaryFolder empty;
  EXPECT_THAT(error_text([&] { folder_jobs(empty.path("")); }), HasSubstr("no jobs"));
}

}  // namespace
}  // namespace shardplan::report
