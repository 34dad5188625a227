// The store of words: every id that is used exists in every language, none is unused, and
// translations keep the places of values.
#include "words/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "json/document.h"
#include "lint/registry.h"
#include "options/groups.h"
#include "support/source_literals.h"
#include "words_testing.h"

namespace shardplan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using Names = std::set<std::string>;

Names ids(const Json& object) {
  Names all;
  for (const auto& [id, words] : object.items()) all.insert(id);
  return all;
}

std::multiset<std::string> places(const std::string& words, const char* pattern) {
  const std::regex place(pattern);
  std::multiset<std::string> found;
  for (std::sregex_iterator it(words.begin(), words.end(), place), end; it != end; ++it)
    found.insert(it->str());
  return found;
}

Names without(const Names& all, const Names& others) {
  Names left;
  std::set_difference(all.begin(), all.end(), others.begin(), others.end(),
                      std::inserter(left, left.end()));
  return left;
}

const std::vector<SourceLiteral>& sources() {
  static const std::vector<SourceLiteral> all = source_literals({"core", "planner", "gui"});
  return all;
}

/// What is handed to a function by that name.
Names handed_to(std::string_view callee) {
  Names texts;
  for (const SourceLiteral& l : sources())
    if (l.callee == callee) texts.insert(l.text);
  return texts;
}

void add_strings(const Json& value, Names& texts) {
  if (value.is_string()) texts.insert(value.get<std::string>());
  if (value.is_structured())
    for (const Json& part : value) add_strings(part, texts);
}

/// Every text that the program can say: of the sources, and of the schema of DeepSpeed's keys.
const Names& texts() {
  static const Names all = [] {
    Names found;
    for (const SourceLiteral& l : sources()) found.insert(l.text);
    add_strings(read_json_file(std::string(SHARDPLAN_SOURCE_DIR) + "/data/deepspeed/schema.json"),
                found);
    return found;
  }();
  return all;
}

class WordsOf : public ::testing::TestWithParam<std::string> {};

TEST_P(WordsOf, HaveEveryMessageWithTheSamePlaces) {
  const Json english = topic("en", "report").at("messages");
  const Json other = topic(GetParam(), "report").at("messages");
  EXPECT_EQ(ids(english), ids(other));
  for (const auto& [id, words] : english.items()) {
    if (!other.contains(id)) continue;
    EXPECT_EQ(places(words, R"(\{[a-z_]+\})"), places(other.at(id), R"(\{[a-z_]+\})")) << id;
  }
}

TEST_P(WordsOf, KeepTheNamesOfPhrases) {
  for (const auto& [english, words] : topic(GetParam(), "report").at("phrases").items())
    EXPECT_EQ(places(english, R"(\{[a-z_]+\})"), places(words, R"(\{[a-z_]+\})")) << english;
}

TEST_P(WordsOf, NameEveryFieldOfASentenceOnce) {
  for (const auto& [english, words] : topic(GetParam(), "lint").at("sentences").items()) {
    std::multiset<std::string> numbered;
    for (std::size_t i = 0; i < places(english, R"(\{(:[^{}]*)?\})").size(); ++i)
      numbered.insert("{" + std::to_string(i) + "}");
    EXPECT_EQ(places(words, R"(\{\d+\})"), numbered) << english;
  }
}

TEST_P(WordsOf, HaveEveryTextOfTheWindowsWithItsPlaces) {
  const Json window = topic(GetParam(), "window");
  EXPECT_EQ(ids(window), handed_to("tr"));
  for (const auto& [english, words] : window.items())
    EXPECT_EQ(places(english, "%[0-9]|<br>|</?b>"), places(words, "%[0-9]|<br>|</?b>")) << english;
}

TEST_P(WordsOf, HaveTitleExplanationAndAdviceOfEveryRule) {
  const Json rules = topic(GetParam(), "lint").at("rules");
  Names known;
  for (const RuleFamily& family : rule_families())
    for (const Rule& rule : family.rules) known.emplace(rule.id.text());
  EXPECT_EQ(ids(rules), known);
  // A title that is a key's name is the same in every language.
  for (const auto& [id, words] : rules.items())
    EXPECT_TRUE(words.contains("title") && words.contains("explanation") &&
                words.contains("advice"))
        << id;
}

TEST_P(WordsOf, AreNowhereEmpty) {
  Names all;
  for (const char* name : {"report", "lint", "window"}) add_strings(topic(GetParam(), name), all);
  EXPECT_FALSE(all.contains(""));
}

TEST_P(WordsOf, HaveEverySentenceThatIsMadeOfValues) {
  // A pattern of places and signs alone says nothing.
  const std::regex nothing_to_translate(R"((\{[^{}]*\}|[^A-Za-z])*)");
  Names patterns;
  for (const SourceLiteral& l : sources())
    if (l.callee == "say" && l.file.find("/load/job.cpp") == std::string::npos &&
        !std::regex_match(l.text, nothing_to_translate))
      patterns.insert(l.text);
  EXPECT_GT(patterns.size(), 100U);
  EXPECT_THAT(without(patterns, ids(topic(GetParam(), "lint").at("sentences"))), IsEmpty());
}

TEST_P(WordsOf, HaveNoSentenceThatNobodySays) {
  EXPECT_THAT(without(ids(topic(GetParam(), "lint").at("sentences")), texts()), IsEmpty());
}

/// A rule of several words: `names`, numbers and one word are the same in all languages.
bool is_sentence(std::string_view rule) {
  static const std::regex kCode("`[^`]*`"), kWords("[A-Za-z]+[^A-Za-z]+[A-Za-z]+");
  return std::regex_search(std::regex_replace(std::string(rule), kCode, ""), kWords);
}

/// A window lists every option, with what it is and what holds when it is left open.
TEST_P(WordsOf, HaveWhatEveryOptionIs) {
  Names asked;
  for (const auto& [group, scope] : all_scoped_options()) {
    if (!scope.of_run) continue;  // a page of their own
    for (const ListedOption& option : group.options) {
      if (option.info->kind == OptionKind::block) continue;
      asked.emplace(option.info->help);
      if (is_sentence(option.info->default_text)) asked.emplace(option.info->default_text);
    }
  }
  EXPECT_GT(asked.size(), 100U);
  EXPECT_THAT(without(asked, ids(topic(GetParam(), "report").at("phrases"))), IsEmpty());
}

/// What an answer says of a compiled step: sentences as a whole, without values.
TEST_P(WordsOf, HaveWhatACompiledStepAssumes) {
  Names said;
  for (const SourceLiteral& l : sources())
    if (l.file.ends_with("compile/assumptions.cpp") && l.text.find(" ") != std::string::npos)
      said.insert(l.text);
  EXPECT_GT(said.size(), 10U);
  EXPECT_THAT(without(said, ids(topic(GetParam(), "report").at("phrases"))), IsEmpty());
}

/// The longest of the parts between places.
std::string longest_part(const std::string& words) {
  static const std::regex kPlace(R"(\{[^{}]*\})");
  std::string longest;
  for (std::sregex_token_iterator it(words.begin(), words.end(), kPlace, -1), end; it != end; ++it)
    if (it->length() > static_cast<std::ptrdiff_t>(longest.size())) longest = it->str();
  std::replace(longest.begin(), longest.end(), '_', ' ');
  return longest;
}

/// A phrase is a sentence of core with names for its values, or made of two of its patterns.
TEST_P(WordsOf, HaveNoPhraseThatNobodySays) {
  constexpr std::size_t kTelling = 8;  // letters that are no accident
  Names parts;
  for (const std::string& text : texts())
    if (std::string part = longest_part(text); part.size() >= kTelling)
      parts.insert(std::move(part));
  for (const auto& [english, words] : topic(GetParam(), "report").at("phrases").items()) {
    std::string plain = english;
    std::replace(plain.begin(), plain.end(), '_', ' ');
    const std::string own = longest_part(english);
    const bool said = std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
      return part.find(own) != std::string::npos || plain.find(part) != std::string::npos;
    });
    EXPECT_TRUE(said || texts().contains(english)) << english;
  }
}

INSTANTIATE_TEST_SUITE_P(Translated, WordsOf, ::testing::Values("ja", "ko"),
                         [](const auto& language) { return language.param; });

TEST(Messages, ExistWhereTheyAreNamed) {
  const Names known = ids(topic("en", "report").at("messages"));
  for (const std::string& id : handed_to("message"))
    EXPECT_TRUE(known.contains(id) || id.ends_with('.') || id.ends_with('_')) << id;
}

/// By their whole name, or by the part before what an enumeration adds: "category.".
TEST(Messages, AreAllUsed) {
  Names starts;
  for (const std::string& text : texts())
    if (text.size() > 3 && (text.ends_with('.') || text.ends_with('_')) &&
        text.find(' ') == std::string::npos)
      starts.insert(text);
  for (const std::string& id : ids(topic("en", "report").at("messages")))
    EXPECT_TRUE(texts().contains(id) ||
                std::any_of(starts.begin(), starts.end(),
                            [&](const std::string& start) { return id.starts_with(start); }))
        << id;
}

TEST(WordStore, HasTheLanguagesOfTheDataFolder) {
  EXPECT_THAT(languages(), ElementsAre("en", "ja", "ko"));
}

TEST(WordStore, FillsThePlacesOfAMessage) {
  const WordStore store("en");
  EXPECT_EQ(store.message("cluster.one_node", {{"gpus", "4"}, {"gpu", "X"}}), "4 × X");
  EXPECT_THROW(store.message("cluster.one_node"), std::logic_error);
  EXPECT_THROW(store.message("no.such-message"), std::logic_error);
}

TEST(WordStore, LeavesTheKeyBeforeAPhraseAsItIs) {
  const WordStore store("ja");
  const auto alone = store.phrase("units by 'x' are not estimated");
  ASSERT_TRUE(alone);
  EXPECT_EQ(store.phrase("fsdp_auto_wrap_policy: units by 'x' are not estimated"),
            "fsdp_auto_wrap_policy: " + *alone);
  EXPECT_EQ(store.phrase("two words: units by 'x' are not estimated"), std::nullopt);
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
}  // namespace shardplan
