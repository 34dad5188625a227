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

/// A network divided by every degree of its recipe, a batch of generation, and four models in turn.
TEST(GoldenReports, OfEveryKindOfJob) {
  for (const std::string name :
       {"llama-3.1-405b-megatron", "llama-3.1-8b-inference", "opt-1.3b-ppo-zero3"}) {
    const Report report = job_report(findings_of(name + ".json"));
    for (const std::string& language : report_languages())
      expect_golden(report_markdown(report, Messages(language)), name + "." + language + ".md");
    const Messages english("en");
    expect_golden(report_html(report, english), name + ".en.html");
    expect_golden(report_json(report, english), name + ".json");
    expect_golden(report_csv(report, english), name + ".csv");
  }
}

/// The job of configs/jobs with a change (RFC 7396).
Findings changed(const std::string& job, const char* patch) {
  Json document = read_json_file(kSources + "/configs/jobs/" + job);
  document.merge_patch(Json::parse(patch));
  return findings_of(document, "changed.json");
}

TEST(GoldenReports, OfTheDifferenceBetweenTwoJobs) {
  const auto expect = [](const Findings& before, const Findings& after, const std::string& name) {
    expect_golden(report_markdown(difference_report(before, after), Messages("en")), name);
  };
  expect(findings_of("llama-2-7b-zero3.json"), findings_of("llama-2-7b-zero2-offload.json"),
         "zero3-to-zero2-offload.md");
  expect(findings_of("llama-3.1-405b-megatron.json"),
         changed("llama-3.1-405b-megatron.json",
                 R"({"parallel": {"context": 4}, "workload": {"gradient_accumulation": 64}})"),
         "context-2-to-4.md");
  expect(findings_of("llama-3.1-8b-inference.json"),
         changed("llama-3.1-8b-inference.json",
                 R"({"workload": {"batch": 32, "quantization": "fp8"}})"),
         "inference-to-fp8.md");
  expect(findings_of("opt-1.3b-ppo-zero3.json"),
         changed("opt-1.3b-ppo-zero3.json",
                 R"({"workload": {"models": {"reference": {"idle": "host"}}}})"),
         "ppo-reference-to-host.md");
}

TEST(Difference, RefusesJobsOfTwoKinds) {
  try {
    difference_report(findings_of("gpt2-single.json"), findings_of("llama-3.1-8b-inference.json"));
    FAIL() << "two kinds were compared";
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(), HasSubstr("workload.kind: inference, and train in configs/jobs/gpt2"));
  }
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
    const Findings& found = findings_of(job);
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

const Json& table(const Json& report, const std::string& section_id, const std::string& id) {
  for (const Json& t : section(report, section_id).at("tables"))
    if (t.at("id") == id) return t.at("rows");
  throw std::out_of_range(id);
}

TEST(ReportJson, HasEveryStageThatDiffersAndTheWorstOne) {
  const Findings found = findings_of("llama-3.1-405b-megatron.json");
  const Json json = json_of(job_report(found));
  const Json& rows = table(json, "degrees", "pipeline");
  ASSERT_EQ(rows.size(), found.ranks.size());
  std::int64_t most = 0, worst = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].at("rank").at("value"), found.ranks[i].rank);
    const auto needed = rows[i].at("gpu_needed").at("value").get<std::int64_t>();
    EXPECT_EQ(needed, found.ranks[i].device.point);
    if (needed > most) worst = found.ranks[i].rank;
    most = std::max(most, needed);
  }
  EXPECT_EQ(worst, found.estimate.rank);
  // 7 blocks on the first and the last of 16 stages, 8 on the others: 126 of llama-3.1-405b.
  EXPECT_EQ(rows[0].at("blocks").at("value"), 7);
  EXPECT_EQ(rows[1].at("stages"), "1–14");
  EXPECT_EQ(rows[1].at("blocks").at("value"), 8);
  // 1F1B: the first stage holds as many micro-batches as there are stages, the last one.
  EXPECT_EQ(rows[0].at("passes_alive").at("value"), 16);
  EXPECT_EQ(rows[2].at("passes_alive").at("value"), 1);
  const Json& degrees = table(json, "degrees", "degrees");
  std::int64_t product = 1;
  for (const Json& row : degrees) product *= row.at("ranks").at("value").get<std::int64_t>();
  EXPECT_EQ(product, 16'384);
}

TEST(ReportJson, HasTheBatchesThatFit) {
  const Findings found = findings_of("llama-3.1-8b-inference.json");
  const Json json = json_of(job_report(found));
  const Json& rows = table(json, "generation", "capacity");
  const Calibration calibration = load_calibration();
  ASSERT_EQ(rows.size(), 5U);
  for (const Json& row : rows) {
    Plan plan = found.job.plan;
    plan.workload.sequence_length = row.at("prompt").at("value").get<std::int64_t>();
    plan.workload.micro_batch = row.at("largest_batch").at("value").get<std::int64_t>();
    EXPECT_TRUE(estimate(found.job.model, plan, calibration).verdict.fits);
    ++plan.workload.micro_batch;
    EXPECT_FALSE(estimate(found.job.model, plan, calibration).verdict.fits);
    // Llama 3.1 8B: keys and values of 32 layers, 8 heads of 128, two bytes each.
    EXPECT_EQ(row.at("cache").at("value").get<std::int64_t>(),
              row.at("largest_batch").at("value").get<std::int64_t>() *
                  row.at("context").at("value").get<std::int64_t>() * 2 * 32 * 8 * 128 * 2);
  }
}

TEST(ReportJson, HasTheTurnsOfAnIteration) {
  const Findings found = findings_of("qwen2.5-1.5b-grpo.json");
  const Json json = json_of(job_report(found));
  const Json& turns = table(json, "models", "turns");
  ASSERT_EQ(turns.size(), 3U);
  std::int64_t peak = 0;
  double time = 0;
  for (const Json& turn : turns) {
    peak = std::max(peak, turn.at("turn_peak").at("value").get<std::int64_t>());
    time += turn.at("turn_time").at("value").get<double>();
  }
  EXPECT_EQ(peak, found.estimate.allocated.point);
  EXPECT_NEAR(time, found.estimate.time.step_seconds, 1e-3 * time);
  // The reference is away but for its own turn.
  EXPECT_EQ(turns[0].at("present"), "actor");
  EXPECT_EQ(turns[1].at("present"), "actor + reference");
  EXPECT_EQ(turns[2].at("present"), "actor");
  const Json& models = table(json, "models", "models");
  EXPECT_EQ(models[1].at("idle"), "on the host");
  // The frozen reference: two bytes for each of its parameters, in blocks of 512 bytes.
  EXPECT_NEAR(models[1].at("keeps").at("value").get<double>(),
              2.0 * static_cast<double>(found.job.model.parameter_count()), 1e6);
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
