#include "embedded/known_json.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace shardplan {
namespace {

class KnownReader {
 public:
  explicit KnownReader(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  Json value() {
    switch (next()) {
      case '{':
        return object();
      case '[':
        return array();
      case '"':
        return string();
      case 't':
        return word(4, true);
      case 'f':
        return word(5, false);
      case 'n':
        return word(4, nullptr);
      default:
        return number();
    }
  }

 private:
  /// The next character that is no blank.
  char next() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
    assert(at_ != end_);
    return *at_;
  }

  Json word(std::size_t length, Json meaning) {
    at_ += length;
    return meaning;
  }

  /// Steps over `open`, and then calls read() for each item up to `close`.
  template <typename Read>
  void items(char close, Read&& read) {
    ++at_;
    while (next() != close) {
      read();
      if (next() == ',') ++at_;
    }
    ++at_;
  }

  Json object() {
    constexpr std::size_t kUsual = 8;  // moving members to a larger place copies their keys
    Json::object_t members;
    members.reserve(kUsual);
    items('}', [&] {
      std::string key = string();
      next();
      ++at_;  // the colon
      // Not emplace(), which looks for the key among those before it.
      members.emplace_back(std::move(key), value());
    });
    return Json(std::move(members));
  }

  Json array() {
    Json::array_t list;
    items(']', [&] { list.push_back(value()); });
    return Json(std::move(list));
  }

  Json number() {
    const char* const last = std::find_if(
        at_, end_, [](char c) { return c == ',' || c == '}' || c == ']' || c <= ' '; });
    const std::string_view digits(at_, static_cast<std::size_t>(last - at_));
    at_ = last;
    if (digits.find_first_of(".eE") != std::string_view::npos) return parsed<double>(digits);
    if (digits.starts_with('-')) return parsed<Json::number_integer_t>(digits);
    return parsed<Json::number_unsigned_t>(digits);
  }

  template <typename Number>
  static Json parsed(std::string_view digits) {
    Number number{};
    [[maybe_unused]] const auto read =
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
    assert(read.ec == std::errc());
    return number;
  }

  std::string string() {
    std::string text;
    for (++at_;; ++at_) {
      const char* const stop =
          std::find_if(at_, end_, [](char c) { return c == '"' || c == '\\'; });
      assert(stop != end_);
      text.append(at_, stop);
      at_ = stop + 1;
      if (*stop == '"') return text;
      add_escaped(text);
    }
  }

  /// What stands behind a backslash, one character.
  void add_escaped(std::string& text) {
    constexpr std::string_view kLetters = "bfnrt", kMeanings = "\b\f\n\r\t";
    const std::size_t letter = kLetters.find(*at_);
    text += letter == std::string_view::npos ? *at_ : kMeanings[letter];
  }

  const char* at_;
  const char* end_;
};

}  // namespace

Json read_known_json(std::string_view text) {
  return KnownReader(text).value();
}

}  // namespace shardplan
