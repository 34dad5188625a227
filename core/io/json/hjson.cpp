#include "json/hjson.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/diagnostic.h"
#include "json/text_position.h"
#include "json/utf8.h"

namespace shardplan {
namespace {

constexpr std::string_view kBlanks = " \t\n\r";
constexpr std::string_view kPunctuation = "{}[],:";
constexpr double kLargestWhole = 1e10;  // hjson: a float below it that is whole becomes an int

bool is_one_of(char c, std::string_view set) {
  return set.find(c) != std::string_view::npos;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_one_of(text.front(), kBlanks)) text.remove_prefix(1);
  while (!text.empty() && is_one_of(text.back(), kBlanks)) text.remove_suffix(1);
  return text;
}

/// The number that all of `text` is, blanks around it aside.
std::optional<Json> number_in(std::string_view text) {
  const std::string_view digits = trimmed(text);
  Json number = Json::parse(digits.begin(), digits.end(), nullptr, false);
  if (!number.is_number()) return std::nullopt;
  if (!number.is_number_float()) return number;
  const double x = number.get<double>();
  if (std::trunc(x) == x && std::abs(x) < kLargestWhole) return Json(static_cast<std::int64_t>(x));
  return number;
}

void append_utf8(std::string& out, std::uint32_t c) {
  const auto tail = [&](unsigned shift) {
    out += static_cast<char>(0x80U | ((c >> shift) & 0x3FU));
  };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0U | (c >> 6U));
    tail(0);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0U | (c >> 12U));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xF0U | (c >> 18U));
    tail(12), tail(6), tail(0);
  }
}

class HjsonParser {
 public:
  HjsonParser(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
  }

  Json document() {
    skip();
    if (at_ == text_.size()) return Json::object();
    Json read = here() == '{' || here() == '[' ? value(0) : members(0, true);
    skip();
    if (at_ != text_.size()) fail("more text after the end of the document");
    return read;
  }

 private:
  char here() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }
  bool over() const { return at_ >= text_.size(); }

  [[noreturn]] void fail(const Said& what) const {
    throw InputError({.file = file_,
                      .message = say("not valid JSON: {}", what),
                      .position = position_of(text_, at_ + 1),
                      .rule = "json.syntax"_rule});
  }

  void skip_line() {
    while (!over() && here() != '\n' && here() != '\r') ++at_;
  }

  bool at_comment() const {
    return here() == '#' || (here() == '/' && (next() == '/' || next() == '*'));
  }

  /// Blanks and comments.
  void skip() {
    while (!over()) {
      if (is_one_of(here(), kBlanks)) {
        ++at_;
      } else if (here() == '/' && next() == '*') {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) fail("a comment that does not end");
        at_ = end + 2;
      } else if (at_comment()) {
        skip_line();
      } else {
        return;
      }
    }
  }

  Json value(int depth) {
    if (depth > kDeepestNesting)
      throw InputError({.file = file_,
                        .message = "values are nested too deeply",
                        .expected = say("at most {} levels", kDeepestNesting),
                        .rule = "json.too-deep"_rule});
    if (over()) fail("a value is missing");
    if (text_.substr(at_).starts_with("'''")) return lines();
    if (here() == '"' || here() == '\'') return quoted();
    if (here() == '{') {
      ++at_;
      return members(depth + 1, false);
    }
    if (here() == '[') {
      ++at_;
      return elements(depth + 1);
    }
    return bare();
  }

  /// After the opening brace; `open`: the document has none.
  Json members(int depth, bool open) {
    Json object = Json::object();
    skip();
    if (!open && here() == '}') {
      ++at_;
      return object;
    }
    while (true) {
      std::string name = key();
      skip();
      if (here() != ':') fail("':' is missing after a key");
      ++at_;
      skip();
      Json read = value(depth);
      if (object.contains(name))
        throw InputError({.file = file_,
                          .key = name,
                          .message = "this key appears twice",
                          .rule = "json.duplicate-key"_rule});
      object[std::move(name)] = std::move(read);
      skip_comma();
      if (open ? over() : here() == '}') break;
    }
    if (!open) ++at_;
    return object;
  }

  Json elements(int depth) {
    Json array = Json::array();
    skip();
    while (here() != ']') {
      if (over()) fail("']' is missing");
      array.push_back(value(depth));
      skip_comma();
    }
    ++at_;
    return array;
  }

  void skip_comma() {
    skip();
    if (here() != ',') return;
    ++at_;
    skip();
  }

  std::string key() {
    if (here() == '"' || here() == '\'') return quoted();
    const std::size_t begin = at_;
    for (; here() != ':'; ++at_) {
      if (over()) fail("a key is missing, or '}'");
      if (is_one_of(here(), "{}[],")) fail(say("'{}' in place of a key", here()));
    }
    const std::string_view name = trimmed(text_.substr(begin, at_ - begin));
    if (name.empty()) fail("':' without a key");
    if (name.find_first_of(kBlanks) != std::string_view::npos)
      fail("a blank in a key without quotes");
    return std::string(name);
  }

  std::string quoted() {
    const char quote = here();
    std::string out;
    for (++at_; here() != quote; ++at_) {
      if (over()) fail("a string that does not end");
      if (static_cast<unsigned char>(here()) < 0x20) fail("a control character in a string");
      if (here() == '\\')
        escape(out);
      else
        out += here();
    }
    ++at_;
    return out;
  }

  /// At a backslash; stops at the escape's last character.
  void escape(std::string& out) {
    ++at_;
    constexpr std::string_view kNames = "\"'\\/bfnrt", kMeant = "\"'\\/\b\f\n\r\t";
    if (here() == 'u') {
      append_utf8(out, code_point());
    } else if (const std::size_t i = kNames.find(here()); !over() && i != std::string_view::npos) {
      out += kMeant[i];
    } else {
      fail("an escape that is none");
    }
  }

  std::uint32_t code_unit() {
    std::uint32_t unit = 0;
    for (int i = 0; i < 4; ++i) {
      ++at_;
      constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
      const std::size_t digit = over() ? std::string_view::npos : kDigits.find(here());
      if (digit == std::string_view::npos) fail("\\u without four digits");
      unit = unit * 16 + static_cast<std::uint32_t>(digit < 16 ? digit : digit - 6);
    }
    return unit;
  }

  /// Two halves of a pair are one character; a half alone stands for what cannot be written.
  std::uint32_t code_point() {
    constexpr std::uint32_t kReplacement = 0xFFFD;
    const std::uint32_t first = code_unit();
    if ((first & 0xF800U) != 0xD800U) return first;
    if ((first & 0xFC00U) != 0xD800U || text_.substr(at_ + 1, 2) != "\\u") return kReplacement;
    at_ += 2;
    const std::uint32_t second = code_unit();
    if ((second & 0xFC00U) != 0xDC00U) return kReplacement;
    return 0x10000U + ((first - 0xD800U) << 10U) + (second - 0xDC00U);
  }

  /// A string in triple quotes, its indentation aside.
  std::string lines() {
    const std::size_t line = text_.rfind('\n', at_);
    const std::size_t indent = at_ - (line == std::string_view::npos ? 0 : line + 1);
    const auto skip_indent = [&](std::size_t most) {
      for (; most > 0 && !over() && is_one_of(here(), " \t\r"); --most) ++at_;
    };
    at_ += 3;
    skip_indent(text_.size());
    if (here() == '\n') {
      ++at_;
      skip_indent(indent);
    }
    std::string out;
    while (!text_.substr(at_).starts_with("'''")) {
      if (over()) fail("a string that does not end");
      const char c = here();
      ++at_;
      if (c != '\r') out += c;
      if (c == '\n') skip_indent(indent);
    }
    at_ += 3;
    if (out.ends_with('\n')) out.pop_back();
    return out;
  }

  /// Without quotes: a number or a word of JSON up to the next sign, else text up to the line's
  /// end.
  Json bare() {
    if (is_one_of(here(), kPunctuation)) fail(say("'{}' in place of a value", here()));
    const std::size_t begin = at_;
    for (;; ++at_) {
      const bool line_ends = over() || here() == '\n' || here() == '\r';
      if (!line_ends && !is_one_of(here(), ",}]") && !at_comment()) continue;
      const std::string_view word = trimmed(text_.substr(begin, at_ - begin));
      if (word == "null") return nullptr;
      if (word == "true") return true;
      if (word == "false") return false;
      if (!word.empty() && (word[0] == '-' || is_digit(word[0])))
        if (auto number = number_in(word)) return *std::move(number);
      if (line_ends) return std::string(word);
    }
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

}  // namespace

Json parse_hjson(std::string_view text, const std::string& file) {
  if (text.size() > kLargestDocument)
    throw InputError({.file = file,
                      .message = fmt::format("the document has {} bytes", text.size()),
                      .expected = fmt::format("at most {} bytes", kLargestDocument),
                      .rule = "json.too-large"_rule});
  require_utf8(text, file);
  return HjsonParser(text, file).document();
}

}  // namespace shardplan
