// The message catalogues: every language says everything, with the same placeholders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "report/render/render.h"
#include "report_testing.h"

namespace shardplan::report {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

Json catalogue(const std::string& language) {
  return read_json_file(kSources + "/data/messages/" + language + ".json");
}

std::multiset<std::string> placeholders(const std::string& text) {
  static const std::regex kPlaceholder(R"(\{[a-z_]+\})");
  std::multiset<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), kPlaceholder), end; it != end; ++it)
    found.insert(it->str());
  return found;
}

std::set<std::string> keys(const Json& object) {
  std::set<std::string> all;
  for (const auto& [key, value] : object.items()) all.insert(key);
  return all;
}

class Language : public ::testing::TestWithParam<std::string> {};

TEST_P(Language, HasEveryMessageWithTheSamePlaceholders) {
  const Json english = catalogue("en"), other = catalogue(GetParam());
  for (const char* part : {"messages", "phrases"}) {
    EXPECT_EQ(keys(english.at(part)), keys(other.at(part))) << part;
    for (const auto& [key, words] : english.at(part).items()) {
      if (!other.at(part).contains(key)) continue;
      EXPECT_EQ(placeholders(words), placeholders(other.at(part).at(key))) << key;
      EXPECT_FALSE(other.at(part).at(key).get<std::string>().empty()) << key;
    }
  }
}

/// A missing message is a std::logic_error; a missing phrase shows English words.
TEST_P(Language, SaysWhatTheExampleJobsNeed) {
  const Messages words(GetParam());
  for (const std::string& job : config_jobs()) {
    const Findings& found = findings_of(job);
    EXPECT_NO_THROW(report_html(job_report(found), words)) << job;
    for (const TrafficLine& line : found.estimate.traffic)
      EXPECT_TRUE(words.phrase(line.what)) << line.what;
    for (const Alternative& a : found.alternatives) {
      EXPECT_TRUE(words.phrase(a.name)) << a.name;
      for (const TrafficLine& line : a.estimate.traffic)
        EXPECT_TRUE(words.phrase(line.what)) << line.what;
    }
    for (const Fix& fix : found.fixes)
      for (const Change& change : fix.changes)
        EXPECT_TRUE(words.phrase(change.what)) << change.what;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Language, ::testing::ValuesIn(report_languages()),
                         [](const auto& language) { return language.param; });

TEST(Languages, AreThoseOfTheDataFolder) {
  EXPECT_THAT(report_languages(), ElementsAre("en", "ja", "ko"));
}

TEST(MatchPattern, TakesTheValuesOfPlaceholders) {
  EXPECT_THAT(*match_pattern("ZeRO stage {stage}", "ZeRO stage 3"),
              ElementsAre(Pair("stage", "3")));
  EXPECT_THAT(*match_pattern("{a} of {b}", "1 of 2 of 3"),
              ElementsAre(Pair("a", "1"), Pair("b", "2 of 3")));
  EXPECT_THAT(*match_pattern("{a} in all", "2 in all in all"), ElementsAre(Pair("a", "2 in all")));
  EXPECT_TRUE(match_pattern("plain", "plain"));
}

TEST(MatchPattern, RefusesWhatDiffers) {
  EXPECT_FALSE(match_pattern("ZeRO stage {stage}", "ZeRO stage "));
  EXPECT_FALSE(match_pattern("ZeRO stage {stage}", "zero stage 3"));
  EXPECT_FALSE(match_pattern("plain", "plain words"));
  EXPECT_FALSE(match_pattern("{a} of them", "none of those"));
}

}  // namespace
}  // namespace shardplan::report
