// Why a file cannot be parsed, in the words of the chosen language: what the parsers of JSON, YAML
// and TOML say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/exceptions.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>

#include "base/diagnostic.h"
#include "json/document.h"
#include "json/hjson.h"
#include "json/syntax_reason.h"
#include "toml/document.h"
#include "words/store.h"
#include "yaml/document.h"

namespace shardplan {
namespace {

/// What the text is refused with.
std::optional<Said> refusal(const std::function<void()>& parse) {
  try {
    parse();
  } catch (const InputError& error) {
    return error.diagnostic().message;
  }
  return std::nullopt;
}

/// Two English words beside each other, or a long one on its own. What is in quotes is the file's.
bool has_english(const std::string& words) {
  const std::string own = std::regex_replace(words, std::regex("'[^']*'"), "");
  return std::regex_search(own, std::regex("[a-z]{3,} [a-z]{2,}|[a-z]{6,}"));
}

class SyntaxReasons : public ::testing::TestWithParam<std::string> {
 protected:
  void expect_said(const std::optional<Said>& said, const std::string& text) const {
    ASSERT_TRUE(said) << text << " was read";
    EXPECT_FALSE(has_english(words_.say(*said))) << text << ": " << words_.say(*said);
  }

  const WordStore words_{GetParam()};
};

TEST_P(SyntaxReasons, OfJson) {
  for (const std::string text :
       {R"({"a": 1,})",   R"({"a" 1})",       R"({a: 1})",       R"(["a")",
        R"({"a": "b)",    R"({"a": 01})",     R"({"a": tru})",   "",
        R"({"a": "\x"})", R"({"a": "\u12"})", "{\"a\": \"\t\"}", R"([1.])",
        R"([-])",         R"([1e])",          R"([1e+])",        R"({"a": 1} x)",
        R"([1 "a"])",     R"([true null])",   R"({"a": 1e999})", "\"\xff\"",
        R"("\ud800")",    R"("\udc00")",      "\xef\xbb"})
    expect_said(refusal([&] { parse_json(text, "x"); }), text);
  for (const std::string text : {"/", "/* a"})
    expect_said(refusal([&] { parse_json(text, "x", JsonComments::skipped); }), text);
}

TEST_P(SyntaxReasons, OfEveryTokenOfJson) {
  using Lexer = nlohmann::detail::lexer_base<nlohmann::json>;
  for (auto token = Lexer::token_type::literal_true; token <= Lexer::token_type::literal_or_value;
       token = static_cast<Lexer::token_type>(static_cast<int>(token) + 1)) {
    if (token == Lexer::token_type::parse_error) continue;  // the lexer's reason stands there
    const std::string name = Lexer::token_type_name(token);
    expect_said(
        json_reason("syntax error while parsing value - unexpected end of input; expected " + name),
        name);
  }
}

TEST_P(SyntaxReasons, OfHjson) {
  for (const std::string text :
       {"{} x", "/* a", "{\"a\":", "{\"a\" 1}", "[1", "{\"a\": 1", "{,}", "{: 1}", "{a b: 1}",
        "{\"a", "{\"a\": \"\x01\"}", "{\"a\": \"\\x\"}", "{\"a\": \"\\u12\"}", "{\"a\": ,}"})
    expect_said(refusal([&] { parse_hjson(text, "x"); }), text);
}

TEST_P(SyntaxReasons, OfYaml) {
  using namespace YAML::ErrorMsg;
  for (const char* const reason : {YAML_DIRECTIVE_ARGS,
                                   YAML_MAJOR_VERSION,
                                   REPEATED_YAML_DIRECTIVE,
                                   TAG_DIRECTIVE_ARGS,
                                   REPEATED_TAG_DIRECTIVE,
                                   CHAR_IN_TAG_HANDLE,
                                   TAG_WITH_NO_SUFFIX,
                                   END_OF_VERBATIM_TAG,
                                   END_OF_MAP,
                                   END_OF_MAP_FLOW,
                                   END_OF_SEQ,
                                   END_OF_SEQ_FLOW,
                                   MULTIPLE_TAGS,
                                   MULTIPLE_ANCHORS,
                                   MULTIPLE_ALIASES,
                                   ALIAS_CONTENT,
                                   INVALID_HEX,
                                   UNKNOWN_TOKEN,
                                   DOC_IN_SCALAR,
                                   EOF_IN_SCALAR,
                                   CHAR_IN_SCALAR,
                                   TAB_IN_INDENTATION,
                                   FLOW_END,
                                   BLOCK_ENTRY,
                                   MAP_KEY,
                                   MAP_VALUE,
                                   ALIAS_NOT_FOUND,
                                   ANCHOR_NOT_FOUND,
                                   CHAR_IN_ALIAS,
                                   CHAR_IN_ANCHOR,
                                   ZERO_INDENT_IN_BLOCK,
                                   CHAR_IN_BLOCK,
                                   AMBIGUOUS_ANCHOR,
                                   UNKNOWN_ANCHOR,
                                   INVALID_SCALAR,
                                   UNMATCHED_GROUP_TAG,
                                   UNEXPECTED_END_SEQ,
                                   UNEXPECTED_END_MAP,
                                   SINGLE_QUOTED_CHAR,
                                   INVALID_ANCHOR,
                                   INVALID_ALIAS,
                                   INVALID_TAG})
    expect_said(Said(reason), reason);
  for (const std::string text : {"a: [1", "a: {b: 1", "a: *b", "\ta: 1\n b: 2", "a: 'b", "a: b: c",
                                 "a: \"\\q\"", "a: \"\\uD800\"", "%YAML 3.0\n---\na: 1"})
    expect_said(refusal([&] { parse_yaml(text, "x"); }), text);
}

TEST_P(SyntaxReasons, OfToml) {
  for (const std::string text : {"a",
                                 "a =",
                                 "a = =",
                                 "a = [1",
                                 "a = [,]",
                                 "a = {b",
                                 "a = {,}",
                                 "a = {b = 1,}",
                                 "a = {b = 1 2}",
                                 "a = [1 2]",
                                 "a = 1_",
                                 "a = 1__0",
                                 "a = _1",
                                 "a = 01",
                                 "a = 0xg",
                                 "a = 0b2",
                                 "a = 1.",
                                 "a = 1e",
                                 "a = 1.e1",
                                 "a = 1ex",
                                 "a = \"b",
                                 "a = \"\\q\"",
                                 "a = \"\\uD800\"",
                                 "a = \"\x01\"",
                                 "a = 2020-13-01",
                                 "a = 2020-1",
                                 "a = 10:70:00",
                                 "a = 25:00:00",
                                 "[a\n",
                                 "[a] b",
                                 "[]",
                                 "= 1",
                                 "a = 1\na = 2",
                                 "[a]\n[a]",
                                 "a = 1 b",
                                 "a = tru",
                                 "\"\"\"a\"\"\" = 1",
                                 "a = 1\r",
                                 "# \x01",
                                 "a = 0x1.8p1",
                                 "[ [a] ]",
                                 "a = {}\na.b = 1",
                                 "a = 99999999999999999999"})
    expect_said(refusal([&] { parse_toml(text, "x"); }), text);
}

INSTANTIATE_TEST_SUITE_P(Translated, SyntaxReasons, ::testing::Values("ja", "ko"),
                         [](const auto& language) { return language.param; });

TEST(SyntaxReason, SaysWhatIsFoundAndWhatIsExpected) {
  EXPECT_EQ(json_reason("[json.exception.parse_error.101] parse error at line 1, column 9: syntax "
                        "error while parsing object key - unexpected '}'; expected string literal")
                .text,
            "found '}', expected a string");
  EXPECT_EQ(json_reason("[json.exception.parse_error.101] parse error at line 1, column 3: syntax "
                        "error while parsing value - invalid number; expected digit after '-'; "
                        "last read: '[-]'; expected ']'")
                .text,
            "invalid number; expected digit after '-', last read: '[-]'");
  EXPECT_EQ(json_reason("[json.exception.out_of_range.406] number overflow parsing '1e999'").text,
            "number overflow parsing '1e999'");
  EXPECT_EQ(toml_reason("Error while parsing key-value pair: expected value, saw '='").text,
            "found '=', expected value");
  EXPECT_EQ(toml_reason("Error while parsing string: encountered end-of-file").text,
            "encountered end-of-file");
}

}  // namespace
}  // namespace shardplan
