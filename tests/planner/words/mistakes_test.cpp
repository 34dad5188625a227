// Mistakes are told in the words of the chosen language entirely: every text that a source refuses
// something with has a phrase, or a sentence of say().
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

#include "json/document.h"
#include "support/refusals.h"
#include "words/store.h"

namespace shardplan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Json topic(const std::string& language, const std::string& name) {
  return read_json_file(std::string(SHARDPLAN_SOURCE_DIR) + "/data/words/" + language + "/" + name +
                        ".json");
}

/// What no window and no report can show: only commands use these files. What commands say stays
/// English.
constexpr std::array<std::string_view, 7> kCommandsAlone{
    "planner/cli/",                    // flags of the commands
    "planner/logs/",                   // shardplan anchor reads logs
    "planner/questions/anchor.cpp",    // shardplan anchor
    "planner/probe/",                  // shardplan probe
    "planner/questions/simulate.cpp",  // shardplan simulate
    "planner/render/option_text.cpp",  // shardplan catalog keeps tables of the manual up to date
    "planner/report/batch/",           // shardplan report of many jobs
};

bool is_left_out(const std::string& file) {
  return std::ranges::any_of(kCommandsAlone,
                             [&](std::string_view name) { return file.starts_with(name); });
}

/// Whether the text has English to translate: two words with a blank between, one with letters,
/// where a value counts as one. `code`, {objects}, one word and names with commas between are the
/// same in all languages.
bool is_sentence(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char end = text[i] == '`' ? '`' : text[i] == '{' ? '}' : '\0';
    const std::size_t close = end == '\0' ? std::string::npos : text.find(end, i + 1);
    if (close == std::string::npos)
      plain += text[i];
    else
      i = close;
  }
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  std::istringstream items(plain);
  for (std::string item; std::getline(items, item, ',');) {
    std::istringstream words(item);
    int count = 0;
    bool letters = false;
    for (std::string word; words >> word;) {
      const bool has_letter = std::ranges::any_of(word, letter);
      if (has_letter || word.find(Refusal::kValue) != std::string::npos) ++count;
      letters = letters || has_letter;
    }
    if (count > 1 && letters) return true;
  }
  return false;
}

/// Values behind a letter, "image{}", are the s of several. Others stay, as nothing that a phrase
/// could have.
std::string with_values(std::string text) {
  for (std::size_t i = 1; i < text.size(); ++i)
    if (text[i] == Refusal::kValue && std::isalpha(static_cast<unsigned char>(text[i - 1])) != 0)
      text[i] = 's';
  return text;
}

std::string shown(std::string text) {
  std::ranges::replace(text, Refusal::kValue, '_');
  return text;
}

/// What is wrong with how the phrases say the text; nullopt when nothing is. The first phrase that
/// matches counts, as for the windows, and none of its places may take words in.
std::optional<std::string> unsaid(const Json& phrases, const std::string& text) {
  const std::string filled = with_values(text);
  for (const auto& [english, words] : phrases.items()) {
    const auto values = match_pattern(english, filled);
    if (!values) continue;
    for (const auto& [name, value] : *values)
      if (is_sentence(value))
        return shown(filled + ": '" + value + "' stays English in '" + english + "'");
    return std::nullopt;
  }
  return shown(filled);
}

class MistakesOf : public ::testing::TestWithParam<std::string> {};

TEST_P(MistakesOf, HaveEveryMistake) {
  const Json phrases = topic(GetParam(), "report").at("phrases");
  const Json sentences = topic(GetParam(), "lint").at("sentences");
  std::set<std::string> missing;
  std::size_t asked = 0;
  for (const Refusal& r : refusals({"core", "planner", "gui"})) {
    // That say() has its sentence is tested with the store.
    if (r.said || is_left_out(r.file) || !is_sentence(r.text) || sentences.contains(r.text))
      continue;
    ++asked;
    if (const auto problem = unsaid(phrases, r.text)) missing.insert(r.file + ": " + *problem);
  }
  EXPECT_GT(asked, 900U);
  EXPECT_THAT(missing, IsEmpty());
}

/// The first phrase that matches counts: none may stand behind one that takes it for its own.
TEST_P(MistakesOf, HaveNoPhraseBehindAnother) {
  const Json phrases = topic(GetParam(), "report").at("phrases");
  for (const auto& [english, words] : phrases.items()) {
    const std::string text =
        std::regex_replace(english, std::regex(R"(\{[a-z_]+\})"), std::string(1, Refusal::kValue));
    for (const auto& [earlier, other] : phrases.items()) {
      if (!match_pattern(earlier, text)) continue;
      EXPECT_EQ(earlier, english);
      break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Translated, MistakesOf, ::testing::Values("ja", "ko"),
                         [](const auto& language) { return language.param; });

TEST(Mistakes, AreLeftOutByFilesThatExist) {
  std::set<std::string_view> met;
  for (const Refusal& r : refusals({"planner"}))
    for (const std::string_view name : kCommandsAlone)
      if (r.file.starts_with(name)) met.insert(name);
  EXPECT_EQ(met.size(), kCommandsAlone.size());
}

TEST(Mistakes, AreUnsaidWhereNoPhraseIsLikeThem) {
  const Json phrases = Json::parse(R"({"found {value}": "", "{a} or {b}": "", "no file": ""})");
  const std::string value(1, Refusal::kValue);
  EXPECT_FALSE(unsaid(phrases, "no file"));
  EXPECT_FALSE(unsaid(phrases, "found " + value));
  EXPECT_TRUE(unsaid(phrases, "no files"));
  EXPECT_TRUE(unsaid(phrases, "found " + value + " beside it"));
  EXPECT_TRUE(unsaid(phrases, "no such file or none"));
}

TEST(Mistakes, AreSentencesWhereWordsFollowWords) {
  const std::string value(1, Refusal::kValue);
  for (const std::string& text : {std::string("a file"), "found " + value, value + " layers"})
    EXPECT_TRUE(is_sentence(text)) << text;
  for (const std::string& text :
       {std::string("torch"), std::string("fsdp2, ddp"), std::string("{\"scope\": \"model\"}"),
        std::string("`shardplan fit`"), value + ", " + value})
    EXPECT_FALSE(is_sentence(text)) << text;
}

std::vector<std::string> texts_in(std::string_view source) {
  std::vector<std::string> texts;
  for (const Refusal& r : refusals_in("x.cpp", source)) {
    std::string text = r.text;
    std::ranges::replace(text, Refusal::kValue, '%');
    texts.push_back((r.said ? "say " : "") + text);
  }
  return texts;
}

TEST(Refusals, ArePutTogetherAsTheSourceDoes) {
  EXPECT_THAT(texts_in(R"(job.fail("key", "found " + describe(x), "a "  // comment
                                   "number");)"),
              ElementsAre("key", "found %", "a number"));
  EXPECT_THAT(texts_in(R"(refuse(fmt::format("{} of {:.1f} {{}}", a, b), say("no {}", c));)"),
              ElementsAre("% of % {}", "say no %"));
  EXPECT_THAT(texts_in(R"(fail(ok ? std::string("one") : two ? "two" : f(3));)"),
              ElementsAre("one", "two"));
  EXPECT_THAT(texts_in(R"(throw InputError({.file = "f", .key = "k", .message = "m " + why});)"),
              ElementsAre("m %"));
  EXPECT_THAT(texts_in(R"(return DivisionProblem{"key", "a " + (b ? "b" : "c"), "1"};)"),
              ElementsAre("key", "a b", "a c", "1"));
}

TEST(Refusals, AreReadFromWhatANameIsMade) {
  EXPECT_THAT(
      texts_in(R"(constexpr const char* kWords = "a word"; fail("key", kWords, x[1'000]);)"),
      ElementsAre("key", "a word"));
  EXPECT_THAT(texts_in(R"(std::string message = "a " + name; if (x) stop(std::move(message));)"),
              ElementsAre("a %"));
  EXPECT_THAT(texts_in(R"(note("no refusal"); refusals = "none";)"), IsEmpty());
}

}  // namespace
}  // namespace shardplan
