// Configurations that people reported, as they stood: each mistake is found, and --fix cures those
// that have one answer.
#include "lint_testing.h"
#include "render/lint_text.h"

namespace shardplan {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

const std::filesystem::path& issues() {
  static const std::filesystem::path folder = lint_folder() / "issues";
  return folder;
}

std::vector<Json> reported() {
  return read_json_file((issues() / "index.json").string()).get<std::vector<Json>>();
}

class ReportedConfiguration : public ::testing::TestWithParam<Json> {
 protected:
  Json options() const { return GetParam().value("options", Json::object()); }
  std::string name() const { return GetParam().at("name").get<std::string>(); }
};

TEST_P(ReportedConfiguration, IsFoundWrong) {
  const LintReport report = lint_example(issues(), name(), options());
  const std::vector<std::string> found = rules_of(report, Severity::warning);
  for (const Json& rule : GetParam().at("rules"))
    EXPECT_THAT(found, Contains(rule.get<std::string>())) << lint_text(report);
}

TEST_P(ReportedConfiguration, IsCuredWhereThereIsOneAnswer) {
  const LintReport report = lint_example(issues(), name(), options());
  ASSERT_FALSE(report.fixed.is_null());
  if (!GetParam().at("cured").get<bool>()) return;  // a person must choose
  const LintReport after = lint_text_of(report.fixed.dump(), options());
  EXPECT_THAT(rules_of(after, Severity::error), IsEmpty())
      << report.fixed.dump(2) << lint_text(after);
}

INSTANTIATE_TEST_SUITE_P(From, ReportedConfiguration, ::testing::ValuesIn(reported()),
                         [](const auto& issue) {
                           auto name = issue.param.at("name").template get<std::string>();
                           for (char& c : name)
                             if (c == '-' || c == '.') c = '_';
                           return name;
                         });

TEST(ReportedConfigurations, MoveWhatStandsInTheWrongBlock) {
  const LintReport aio = lint_example(issues(), "aio-inside-zero");
  EXPECT_EQ(value_at(aio.fixed, "zero_optimization.aio"), nullptr);
  ASSERT_NE(value_at(aio.fixed, "aio.thread_count"), nullptr);
  // A loss scale is nothing that bf16 has: it makes no block of fp16.
  const LintReport scaler = lint_example(issues(), "bf16-with-a-loss-scale");
  EXPECT_EQ(scaler.fixed["bf16"], (Json{{"enabled", true}}));
  EXPECT_FALSE(scaler.fixed.contains("fp16"));
}

}  // namespace
}  // namespace shardplan
