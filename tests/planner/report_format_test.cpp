// Reports in their formats: golden files, valid pages, and numbers that are the estimate's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <regex>

#include "report/render/render.h"
#include "report/render/tables.h"
#include "report_testing.h"
#include "support/subprocess.h"

namespace shardplan::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::size_t kLargestPage = 300'000;

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

TEST(GoldenReports, AreTheSameBytes) {
  const Report report = job_report(findings_of("gpt2-zero1.json"));
  for (const std::string& language : report_languages()) {
    const Messages words(language);
    expect_golden(report_html(report, words), "gpt2-zero1." + language + ".html");
  }
  const Messages english("en");
  expect_golden(report_markdown(report, english), "gpt2-zero1.md");
  expect_golden(report_json(report, english), "gpt2-zero1.json");
  expect_golden(report_csv(report, english), "gpt2-zero1.csv");
}

TEST(GoldenReports, OfTheDifferenceBetweenTwoJobs) {
  const Report report = difference_report(findings_of("llama-2-7b-zero3.json"),
                                          findings_of("llama-2-7b-zero2-offload.json"));
  expect_golden(report_markdown(report, Messages("en")), "zero3-to-zero2-offload.md");
}

class Page : public ::testing::TestWithParam<std::string> {
 protected:
  static void SetUpTestSuite() {
    for (const std::string& job : config_jobs())
      pages_[job] = report_html(job_report(findings_of(job)), Messages("en"));
  }
  const std::string& page() const { return pages_.at(GetParam()); }

 private:
  static inline std::map<std::string, std::string> pages_;
};

TEST_P(Page, NeedsNothingFromOutside) {
  EXPECT_LT(page().size(), kLargestPage);
  EXPECT_THAT(page(), Not(HasSubstr("<script")));
  EXPECT_THAT(page(), Not(HasSubstr("src=")));
  EXPECT_THAT(page(), Not(HasSubstr("@import")));
  EXPECT_THAT(page(), Not(HasSubstr("url(")));
}

TEST_P(Page, CanBeHeard) {
  EXPECT_THAT(page(), HasSubstr("<html lang=\"en\">"));
  EXPECT_EQ(count_of(page(), "<h1>"), 1U);
  EXPECT_EQ(count_of(page(), "<table"), count_of(page(), "<caption>"));
  EXPECT_EQ(count_of(page(), "<th "), count_of(page(), "<th scope="));
  EXPECT_EQ(count_of(page(), "<svg"), count_of(page(), "<svg role=\"img\" aria-labelledby="));
  EXPECT_EQ(count_of(page(), "<svg"), count_of(page(), "<desc id="));
  // A table with the same numbers follows each figure.
  for (std::size_t at = page().find("</svg>"); at != std::string::npos;
       at = page().find("</svg>", at + 1)) {
    const std::size_t table = page().find("<table", at), next = page().find("<svg", at);
    EXPECT_LT(table, next);
  }
}

TEST_P(Page, Validates) {
  if (std::system("command -v tidy >/dev/null") != 0) GTEST_SKIP() << "tidy is not installed";
  const TemporaryFolder folder;
  const Finished tidy =
      run_program("tidy", {"-quiet", "-errors", "-utf8", folder.file("p.html", page())});
  EXPECT_EQ(tidy.exit_code, 0) << tidy.err;
}

INSTANTIATE_TEST_SUITE_P(ExampleJobs, Page, ::testing::ValuesIn(config_jobs()),
                         [](const auto& job) {
                           return std::regex_replace(job.param, std::regex("[^a-z0-9]"), "_");
                         });

Json json_of(const Report& report) {
  return parse_json(report_json(report, Messages("en")), "report");
}

const Json& section(const Json& report, const std::string& id) {
  for (const Json& s : report.at("sections"))
    if (s.at("id") == id) return s;
  throw std::out_of_range(id);
}

TEST(ReportJson, HasTheEstimatesNumbersWithUnitAndSource) {
  const Findings found = findings_of("llama-2-7b-zero3.json");
  const Json json = json_of(job_report(found));
  EXPECT_EQ(json.at("schema"), "shardplan.report/1");
  EXPECT_EQ(json.at("verdict").get<std::string>(),
            std::string(name_of(found.estimate.verdict.gpu.fit)));
  const Json& rows = section(json, "memory").at("tables")[0].at("rows");
  EXPECT_EQ(rows.back().at("at_peak").at("value"), found.estimate.device.point);
  for (const Json& s : json.at("sections"))
    for (const Json& table : s.at("tables"))
      for (const Json& row : table.at("rows"))
        for (const Json& cell : row)
          if (cell.is_object()) {
            EXPECT_TRUE(cell.contains("value") && cell.contains("unit") && cell.contains("source"))
                << table.at("id");
          }
}

TEST(ReportJson, PhasesAreTheEstimates) {
  for (const char* job : {"llama-2-7b-zero3.json", "gpt2-zero1.json", "llama-3.1-8b-fsdp2.json"}) {
    const Findings found = findings_of(job);
    const Json json = json_of(job_report(found));
    const Json& rows = section(json, "step").at("tables")[0].at("rows");
    const auto total = [&](const char* moment) { return rows.back().at(moment).at("value"); };
    EXPECT_EQ(total("forward_peak"), found.estimate.phases[0].peak) << job;
    EXPECT_EQ(total("forward_end"), found.estimate.phases[0].end) << job;
    EXPECT_EQ(total("backward_peak"), found.estimate.phases[1].peak) << job;
    EXPECT_EQ(total("backward_end"), found.estimate.phases[1].end) << job;
    EXPECT_EQ(total("step_peak"), found.estimate.phases[2].peak) << job;
    EXPECT_EQ(total("step_end"), found.estimate.phases[2].end) << job;
  }
}

TEST(Timeline, KeepsThePeakWhenItIsThinned) {
  const Findings found = findings_of("llama-2-70b-zero-infinity.json");
  for (const Section& s : job_report(found).sections)
    for (const Block& block : s.blocks) {
      const auto* chart = std::get_if<Chart>(&block);
      const auto* areas = chart == nullptr ? nullptr : std::get_if<MemoryAreas>(&chart->drawing);
      if (areas == nullptr) continue;
      std::size_t points = 0;
      for (const MemorySpan& span : areas->spans) points += span.points.size();
      EXPECT_LT(points, 600U);
      const CategoryBytes& peak = areas->spans[areas->peak_span].points[areas->peak_point];
      EXPECT_EQ(std::accumulate(peak.begin(), peak.end(), std::int64_t{0}),
                found.estimate.allocated.point);
    }
}

Row row_of(std::vector<Source> sources) {
  Row row{"r", {std::string("name")}};
  for (const Source source : sources) row.cells.push_back(count(1, source));
  return row;
}

TEST(SourcePlace, IsAsFarOutAsTheNumbersAgree) {
  Table table{"t", {}, {{"a"}, {"b", true}, {"c", true}}, {}};
  EXPECT_EQ(source_place(table), SourcePlace::nowhere);
  table.rows.push_back(row_of({Source::exact, Source::exact}));
  EXPECT_EQ(source_place(table), SourcePlace::caption);
  table.rows.push_back(row_of({Source::assumed, Source::assumed}));
  EXPECT_EQ(source_place(table), SourcePlace::column);
  table.rows.push_back(row_of({Source::assumed, Source::exact}));
  EXPECT_EQ(source_place(table), SourcePlace::cell);
  table.rows = {row_of({Source::assumed, Source::exact}), row_of({Source::assumed, Source::exact})};
  EXPECT_EQ(source_place(table), SourcePlace::head);
  table.columns[0].id = "origin";
  EXPECT_EQ(source_place(table), SourcePlace::nowhere);
}

/// Words of a job go into every format as they are, and stay words.
TEST(Escaping, KeepsMarkupOfAJobOut) {
  Json job = read_json_file(kSources + "/configs/jobs/gpt2-single.json");
  job["description"] = "<script>alert(1)</script> | `x`";
  const Findings found = findings_of(job, "a|b<c>.json");
  EXPECT_THAT(report_html(job_report(found), Messages("en")), Not(HasSubstr("<script")));
  const Report difference = difference_report(found, found);
  EXPECT_THAT(report_html(difference, Messages("en")), HasSubstr("a|b&lt;c&gt;.json"));
  EXPECT_THAT(report_markdown(difference, Messages("en")), HasSubstr("a\\|b\\<c\\>.json"));
}

TEST(Csv, QuotesWhatMustBeQuoted) {
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"a\""), "\"say \"\"a\"\"\"");
  EXPECT_EQ(csv_field("a\nb"), "\"a\nb\"");
}

TEST(Quantities, AreWrittenWithTheirUnit) {
  EXPECT_EQ(to_text(bytes(1 << 30, Source::exact)), "1.00 GiB");
  EXPECT_EQ(to_text({std::int64_t{-(1 << 20)}, Unit::bytes, Source::exact, true}), "−1.00 MiB");
  EXPECT_EQ(to_text({0.25, Unit::fraction, Source::exact, true}), "+25.0 %");
  EXPECT_EQ(to_text({2.125, Unit::factor}), "2.12×");
  EXPECT_EQ(to_number({0.1234567890123, Unit::seconds}), "0.123457");
}

}  // namespace
}  // namespace shardplan::report
