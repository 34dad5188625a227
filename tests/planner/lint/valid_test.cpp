// Configurations written from DeepSpeed's documentation give no error and no warning.
#include <sstream>

#include "lint_testing.h"

namespace shardplan {
namespace {

using ::testing::IsEmpty;

std::vector<std::string> names() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(lint_folder() / "valid")) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".json") && name.find('.') == name.size() - 5)
      found.push_back(name.substr(0, name.size() - 5));
  }
  std::sort(found.begin(), found.end());
  return found;
}

class ValidConfiguration : public ::testing::TestWithParam<std::string> {};

TEST_P(ValidConfiguration, HasNoErrorAndNoWarning) {
  const LintReport report = lint_example(lint_folder() / "valid", GetParam());
  std::vector<std::string> findings;
  for (const LintFinding& finding : report.findings)
    if (finding.rule->severity != Severity::note) findings.push_back(to_string(finding.diagnostic));
  EXPECT_THAT(findings, IsEmpty());
  EXPECT_FALSE(report.fixed.is_null());
}

INSTANTIATE_TEST_SUITE_P(Documented, ValidConfiguration, ::testing::ValuesIn(names()),
                         [](const auto& valid) { return valid.param; });

TEST(ValidConfigurations, AreAtLeastFortyAndNameTheirSources) {
  EXPECT_GE(names().size(), 40U);
  std::vector<std::string> listed;
  std::istringstream lines(read_text_file((lint_folder() / "valid/sources.txt").string()));
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with('#')) listed.push_back(line.substr(0, line.find(':')));
  EXPECT_EQ(listed, names());
}

}  // namespace
}  // namespace shardplan
