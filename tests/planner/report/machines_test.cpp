// The table of machines, and the section of a whole run.
#include "report/machines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "report/render/render.h"
#include "report_testing.h"

namespace shardplan::report::machines_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<MachineAnswer> ask(MachineQuestion question, unsigned threads = 2) {
  if (question.job.is_null()) question.job = Json::object();
  return ask_machines(question, hardware(), load_calibration(), threads);
}

const Table& table_of(const Report& report, const std::string& section) {
  for (const Section& s : report.sections)
    if (s.id == section)
      for (const Block& block : s.blocks)
        if (const auto* table = std::get_if<Table>(&block)) return *table;
  throw std::runtime_error("no table in " + section);
}

MachineQuestion question() {
  MachineQuestion q;
  q.models = {"qwen2.5-1.5b", "llama-2-7b"};
  q.methods = {"full", "qlora"};
  q.machines = {"1xRTX3060", "1xH100", "p5.48xlarge"};
  return q;
}

TEST(Machines, AnswersEveryCombinationInOrderWithAnyNumberOfThreads) {
  const auto answers = ask(question());
  ASSERT_EQ(answers.size(), 12U);
  EXPECT_EQ(answers[0].model, "qwen2.5-1.5b");
  EXPECT_EQ(answers[5].machine, "p5.48xlarge");
  EXPECT_EQ(answers[5].method, "qlora");
  EXPECT_EQ(answers[6].model, "llama-2-7b");
  const Messages words("en");
  EXPECT_EQ(report_json(machines_report(answers, "1"), words),
            report_json(machines_report(ask(question(), 1), "1"), words));
}

TEST(Machines, TakesTheLargestMicroBatchThatFitsUnlessOneIsSaid) {
  MachineQuestion one = question();
  one.models = {"llama-2-7b"};
  one.methods = {"qlora"};
  one.machines = {"1xH100"};
  const MachineAnswer largest = ask(one).front();
  EXPECT_TRUE(largest.estimate.verdict.fits);
  EXPECT_GT(largest.plan.workload.micro_batch, 4);
  one.job = Json{{"workload", {{"micro_batch", 2}}}};
  const MachineAnswer said = ask(one).front();
  EXPECT_EQ(said.plan.workload.micro_batch, 2);
  EXPECT_LT(said.estimate.device.point, largest.estimate.device.point);
  one.job = Json{{"workload", {{"micro_batch", largest.plan.workload.micro_batch + 1}}}};
  EXPECT_GT(ask(one).front().estimate.device.upper, largest.estimate.usable_bytes);
}

TEST(Machines, NameTheCheapestAndTheFastestOfThoseThatFit) {
  const Report report = machines_report(ask(question()), "1");
  const Table& choice = table_of(report, "choice");
  ASSERT_EQ(choice.rows.size(), 4U);
  const Messages words("en");
  // All of llama-2-7b trains on eight H100 alone, of these; nobody lists a 3060.
  EXPECT_EQ(words.cell(choice.rows[2].cells[2]), "8 × H100-SXM5-80GB");
  EXPECT_EQ(words.cell(choice.rows[2].cells[4]), "8 × H100-SXM5-80GB");
  const Table& all = table_of(report, "machines");
  ASSERT_EQ(all.rows.size(), 12U);
  for (const Row& row : all.rows) {
    const bool fits = words.cell(row.cells[4]) != words.text("fit.does_not_fit");
    EXPECT_EQ(words.cell(row.cells[8]).empty(), !fits) << words.cell(row.cells[0]);
  }
  EXPECT_EQ(table_of(report, "prices").rows.size(), 2U);
}

TEST(Machines, WhatCannotRunIsARowOfItsOwn) {
  MachineQuestion one = question();
  one.models = {"gpt2"};
  one.methods = {"full"};
  one.machines = {"1xH100"};
  one.job = Json{{"parallel", {{"tensor", 64}}}};
  const auto answers = ask(one);
  EXPECT_FALSE(answers.front().error.empty());
  EXPECT_EQ(table_of(machines_report(answers, "1"), "broken").rows.size(), 1U);
}

TEST(Machines, EveryLanguageHasTheWords) {
  MachineQuestion runs = question();
  runs.job = Json{{"workload", {{"tokens", 1e9}}}};
  runs.machines.emplace_back("3xH200");  // a share of a machine
  const Report report = machines_report(ask(runs), "1");
  for (const std::string& language : languages()) {
    const Messages words(language);
    EXPECT_THAT(report_html(report, words), HasSubstr("2026-")) << language;
    EXPECT_THAT(report_markdown(report, words), Not(HasSubstr("{"))) << language;
  }
}

TEST(WholeRun, IsASectionWhereTokensAreAsked) {
  Job job = load_job(
      Json{{"model", "llama-2-7b"}, {"cluster", "p5.48xlarge"}, {"workload", {{"tokens", 3e11}}}},
      "job.json", {.hardware = &hardware()});
  const Report report = job_report(find_out(std::move(job), load_calibration(), golden_runs(), {}));
  const Table& table = table_of(report, "cost");
  std::set<std::string> rows;
  for (const Row& row : table.rows) rows.insert(row.id);
  for (const char* id : {"tokens", "days", "gpu_hours", "on_demand", "price", "checkpoint",
                         "goodput", "days_in_all"})
    EXPECT_TRUE(rows.contains(id)) << id;
  for (const std::string& language : languages()) {
    const Messages words(language);
    for (const Row& row : table.rows)
      if (row.id == "files") {
        EXPECT_TRUE(words.phrase(std::get<Phrase>(row.cells[1]).english)) << language;
      }
    EXPECT_THAT(report_markdown(report, words), AllOf(HasSubstr("p5.48xlarge"), HasSubstr("$")));
  }
}

}  // namespace
}  // namespace shardplan::report::machines_test
