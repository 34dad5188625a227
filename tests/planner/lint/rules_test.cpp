// Every rule has a configuration that breaks it, and nothing else, and one that keeps it.
#include <map>
#include <set>

#include "embedded/json.h"
#include "lint/registry.h"
#include "lint_testing.h"
#include "words/store.h"

namespace shardplan {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

std::vector<std::string> all_rules() {
  std::vector<std::string> ids;
  for (const RuleFamily& family : rule_families())
    for (const Rule& rule : family.rules) ids.emplace_back(rule.id.text());
  return ids;
}

class LintRule : public ::testing::TestWithParam<std::string> {
 protected:
  std::filesystem::path folder() const { return lint_folder() / "rules" / GetParam(); }
};

TEST_P(LintRule, IsAllThatItsFailingExampleBreaks) {
  const Json options = options_of(folder(), "fail");
  const LintReport report = lint_example(folder(), "fail", options);
  EXPECT_THAT(rules_of(report, Severity::note), Contains(GetParam()));
  const Rule* rule = find_rule(GetParam());
  ASSERT_NE(rule, nullptr);
  std::vector<std::string> expected;
  if (rule->severity != Severity::note) expected.push_back(GetParam());
  if (options.contains("also"))
    for (const Json& other : options["also"]) expected.push_back(other.get<std::string>());
  EXPECT_THAT(rules_of(report, Severity::warning), UnorderedElementsAreArray(expected));
}

TEST_P(LintRule, IsKeptByItsPassingExampleAsAreAllOthers) {
  const LintReport report = lint_example(folder(), "pass", options_of(folder(), "pass"));
  EXPECT_THAT(rules_of(report, Severity::note), Not(Contains(GetParam())));
  EXPECT_THAT(rules_of(report, Severity::warning), IsEmpty());
}

TEST_P(LintRule, IsReportedAsSevereAsItIsAndAtItsPlace) {
  const LintReport report = lint_example(folder(), "fail", options_of(folder(), "fail"));
  for (const LintFinding& finding : report.findings) {
    EXPECT_EQ(finding.diagnostic.severity, finding.rule->severity)
        << finding.diagnostic.message.text;
    EXPECT_TRUE(finding.diagnostic.position.known()) << finding.diagnostic.message.text;
    EXPECT_FALSE(finding.diagnostic.message.empty());
  }
}

/// A repair must cure what it repairs, and make nothing worse.
TEST_P(LintRule, IsCuredByItsRepair) {
  const Json options = options_of(folder(), "fail");
  LintRequest request = example_request(folder(), "fail", options);
  const LintReport report = lint(request);
  bool has_repair = false;
  for (const LintFinding& finding : report.findings)
    if (finding.rule->id.text() == GetParam()) has_repair = has_repair || !finding.edits.empty();
  if (!has_repair) GTEST_SKIP() << "a person must choose";
  const std::string fixed = repaired(request, report).dump(2);
  request.config = SourceText{"fail.json", fixed};
  const LintReport after = lint(request);
  EXPECT_THAT(rules_of(after, Severity::note), Not(Contains(GetParam()))) << fixed;
  EXPECT_LE(after.count(Severity::error), report.count(Severity::error));
}

/// By the patterns that sentences were made of, and what stands in their fields. A word alone, or a
/// number, is a value.
/// By the patterns that sentences were made of. A word alone, or a number, is a value.
void expect_known(const Json& sentences, const Said& said) {
  if (said.text.find(' ') == std::string::npos) return;
  EXPECT_TRUE(sentences.contains(std::string(said.id()))) << said.id();
}

TEST_P(LintRule, IsSaidInEveryLanguage) {
  const LintReport report = lint_example(folder(), "fail", options_of(folder(), "fail"));
  for (const std::string& language : languages()) {
    if (language == "en") continue;
    const Json sentences = embedded_json("words/" + language + "/lint.json").at("sentences");
    const WordStore store(language);
    for (const LintFinding& finding : report.findings) {
      expect_known(sentences, finding.diagnostic.message);
      expect_known(sentences, finding.diagnostic.expected);
      EXPECT_FALSE(store.say(finding.diagnostic.message).empty());  // fills every field
    }
  }
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name;
  bool upper = true;
  for (const char c : info.param) {
    if (c == '.' || c == '-') {
      upper = true;
      continue;
    }
    name += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = false;
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, LintRule, ::testing::ValuesIn(all_rules()), test_name);

TEST(LintRules, AreMoreThanSixtyWithNamesOfTheirOwn) {
  const std::vector<std::string> ids = all_rules();
  EXPECT_GE(ids.size(), 60U);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), ids.size());
}

TEST(LintRules, AreExplainedSourcedAndAdvised) {
  for (const RuleFamily& family : rule_families())
    for (const Rule& rule : family.rules) {
      EXPECT_FALSE(rule.title.empty()) << rule.id.text();
      EXPECT_FALSE(rule.explanation.empty()) << rule.id.text();
      EXPECT_FALSE(rule.source.empty()) << rule.id.text();
      EXPECT_FALSE(rule.advice.empty()) << rule.id.text();
      EXPECT_FALSE(rule.title.ends_with('.')) << rule.id.text();
      EXPECT_TRUE(rule.advice.ends_with('.')) << rule.id.text();
      EXPECT_TRUE(rule.explanation.ends_with('.')) << rule.id.text();
    }
}

TEST(LintRules, HaveAnExampleFolderEachAndNoFolderIsLeftOver) {
  std::set<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(lint_folder() / "rules"))
    folders.insert(entry.path().filename().string());
  const std::vector<std::string> ids = all_rules();
  EXPECT_EQ(folders, std::set<std::string>(ids.begin(), ids.end()));
  for (const std::string& id : ids)
    for (const char* name : {"fail.json", "pass.json"})
      EXPECT_TRUE(std::filesystem::exists(lint_folder() / "rules" / id / name)) << id;
}

/// A rule is said once: in its own file, or where a parser throws it.
TEST(LintRules, AreNamedInOneFileEach) {
  const std::filesystem::path root(SHARDPLAN_SOURCE_DIR);
  std::map<std::string, int> rule_files;
  for (const char* part : {"core/io", "planner/lint"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / part)) {
      if (entry.path().extension() != ".cpp") continue;
      const std::string text = read_text_file(entry.path().string());
      for (std::size_t end = text.find("\"_rule"); end != std::string::npos;
           end = text.find("\"_rule", end + 1)) {
        const std::size_t start = text.rfind('"', end - 1) + 1;
        const std::string id = text.substr(start, end - start);
        if (id == "json.too-large") continue;  // refused before there is anything to lint
        EXPECT_NE(find_rule(id), nullptr) << entry.path() << " " << id;
        if (entry.path().string().find("/rules/") != std::string::npos) ++rule_files[id];
      }
    }
  for (const std::string& id : all_rules()) EXPECT_EQ(rule_files[id], 1) << id;
}

}  // namespace
}  // namespace shardplan
