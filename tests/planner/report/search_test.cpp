// The section about a search: the same from a search that was run and from its file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "questions/search/axes.h"
#include "questions/search/tally.h"
#include "render/search_text.h"
#include "report/render/render.h"
#include "report_testing.h"
#include "support/error_of.h"

namespace shardplan::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

AxisValues few_values() {
  AxisValues v;
  v.zero_stages = {1, 2};
  v.checkpointings = {{Checkpointing::none, {}}, {Checkpointing::full, {}}};
  v.micro_batches = {1, 8, 64};
  v.reduce_buckets = {50'000'000, 500'000'000};
  v.prefetch_buckets = {50'000'000};
  v.persistence_thresholds = {100'000};
  v.tensors = v.ulysses = {1};
  return v;
}

/// shardplan.search/1 of a search around the job.
Json search_of(const Job& job, const AxisValues& values, const Goal& goal = {}) {
  const Calibration calibration = load_calibration();
  const SearchSpace space = make_space(job.model, job.plan, values);
  const SearchResult result = search(job.model, space, goal, calibration, {.threads = 2});
  SearchAnswer answer{job, space, goal, result, {}, calibration};
  if (!result.front.empty())
    answer.others = other_choices(job.model, space, result.front.front(), calibration);
  return search_json(answer);
}

Findings searched(const std::string& job) {
  Findings found = findings_of(job);
  found.search = read_search(search_of(found.job, few_values()), "search.json", found.job);
  return found;
}

const Section& search_of(const Report& report) {
  for (const Section& section : report.sections)
    if (section.id == "search") return section;
  throw std::out_of_range("search");
}

const Table* table_of(const Section& section, const std::string& id) {
  for (const Block& block : section.blocks)
    if (const auto* table = std::get_if<Table>(&block); table != nullptr && table->id == id)
      return table;
  return nullptr;
}

TEST(GoldenReports, WithWhatASearchFound) {
  Report report = job_report(searched("gpt2-zero1.json"));
  std::erase_if(report.sections, [](const Section& s) { return s.id != "search"; });
  for (const std::string& language : languages())
    expect_golden(report_html(report, Messages(language)), "gpt2-search." + language + ".html");
  const Messages english("en");
  expect_golden(report_markdown(report, english), "gpt2-search.md");
  expect_golden(report_json(report, english), "gpt2-search.json");
  expect_golden(report_csv(report, english), "gpt2-search.csv");
}

TEST(SearchSection, AccountsForEveryCandidate) {
  const Findings found = searched("gpt2-zero1.json");
  const Section section = search_of(job_report(found));
  const Table* rules = table_of(section, "ruled_out");
  ASSERT_NE(rules, nullptr);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i + 1 < rules->rows.size(); ++i)
    sum += std::get<std::int64_t>(std::get<Quantity>(rules->rows[i].cells[1]).value);
  EXPECT_EQ(sum, found.search->candidates);
  EXPECT_EQ(rules->rows.back().id, "total");
}

TEST(SearchSection, GivesAReasonForEveryChoice) {
  const Findings found = searched("gpt2-zero1.json");
  const Section section = search_of(job_report(found));
  const Table* reasons = table_of(section, "reasons");
  ASSERT_NE(reasons, nullptr);
  for (const std::string& axis : found.search->axes)
    EXPECT_TRUE(std::any_of(reasons->rows.begin(), reasons->rows.end(), [&](const Row& row) {
      return row.id.starts_with(axis);
    })) << axis;
  constexpr std::size_t kMostRows = 20;  // of a page, however long the front is
  EXPECT_EQ(table_of(section, "front")->rows.size(),
            std::min(found.search->front.size(), kMostRows));
}

TEST(SearchSection, SaysWhatComesClosestWhenNothingFits) {
  Json document = read_json_file(kSources + "/configs/jobs/gpt2-single.json");
  document["model"] = "llama-2-13b";
  document["cluster"] = "1x24GB";
  Findings found = findings_of(document, "big.json");
  AxisValues values = few_values();
  values.zero_stages.clear();
  Goal goal;
  goal.objective = Objective::memory;  // a GPU of so many bytes has no rates
  found.search = read_search(search_of(found.job, values, goal), "search.json", found.job);
  const Section section = search_of(job_report(found));
  EXPECT_EQ(table_of(section, "front"), nullptr);
  ASSERT_NE(table_of(section, "near_miss"), nullptr);
  EXPECT_THAT(report_markdown(job_report(found), Messages("en")), HasSubstr("No plan fits."));
}

TEST(FoundSearch, RefusesWhatIsNoSearchOfThisJob) {
  const Findings found = findings_of("gpt2-zero1.json");
  const Json document = search_of(found.job, few_values());
  const auto error = [&](const Json& changed) {
    return error_text([&] { read_search(changed, "s.json", found.job); });
  };
  EXPECT_THAT(error(Json::parse(R"({"schema": "shardplan.job/1"})")),
              AllOf(HasSubstr("s.json: schema"), HasSubstr("shardplan.search/1")));
  Json other = document;
  other["model"]["parameters"] = 1;
  EXPECT_THAT(error(other), AllOf(HasSubstr("a search for gpt2"), HasSubstr("the job's model")));
  other = document;
  other["cluster"] = "9 × H100";
  EXPECT_THAT(error(other), HasSubstr("a search on 9 × H100"));
  other = document;
  other["front"][0]["estimate"]["gpu"]["peak"].erase("device");
  EXPECT_THAT(error(other), HasSubstr("front[0].estimate.gpu.peak.device: missing"));
  other = document;
  other["other_choices"] = 3;
  EXPECT_THAT(error(other), HasSubstr("other_choices"));
}

/// Words with no translation would stand in English in the middle of a page.
TEST(SearchSection, HasWordsForEveryRuleAndEveryAxis) {
  const Job job = findings_of("llama-2-7b-zero3.json").job;
  std::vector<std::string> words;
  for (std::size_t rule = 0; rule < kRuleCount; ++rule)
    words.emplace_back(sentence_of(static_cast<RuledOutBy>(rule)));
  AxisValues values;
  values.frameworks = {FrameworkKind::deepspeed, FrameworkKind::fsdp2, FrameworkKind::ddp,
                       FrameworkKind::single, FrameworkKind::megatron};
  values.experts = {1, 2};
  values.data = {1};
  values.global_batch = 64;
  AxisValues counted = values;
  counted.accumulations = {1, 2};
  for (const AxisValues& v : {values, counted})
    for (const Axis& axis : make_space(job.model, job.plan, v).axes) {
      words.push_back(axis_words(axis.name));
      words.push_back(axis_head(axis.name));
      for (const AxisRule& rule : axis.rules) words.push_back(rule.sentence);
      for (const std::string& value : axis.values)
        if (value.find(' ') != std::string::npos) words.push_back(value);
    }
  for (const char* language : {"ja", "ko"}) {
    const Messages messages(language);
    for (const std::string& english : words)
      EXPECT_TRUE(messages.phrase(english)) << language << ": " << english;
  }
}

}  // namespace
}  // namespace shardplan::report
