// A sentence for people: in English, and what it was made of, so that a front end can say it in
// another language. The English pattern is the message's id: there is no second copy of it.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardplan {

struct Said {
  std::string text;
  /// A literal: "{} does not divide the {} ranks". Empty: the text is all there is.
  std::string_view pattern;
  std::vector<Said> values;  ///< of the pattern's fields, in their order

  Said() = default;
  Said(std::string words) : text(std::move(words)) {}
  Said(std::string_view words) : text(words) {}
  Said(const char* words) : text(words) {}
  operator const std::string&() const { return text; }

  /// What a translation is found by.
  std::string_view id() const { return pattern.empty() ? std::string_view(text) : pattern; }
  bool empty() const { return text.empty(); }
  friend bool operator==(const Said& a, const Said& b) { return a.text == b.text; }
};

}  // namespace shardplan

template <>
struct fmt::formatter<shardplan::Said> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(const shardplan::Said& said, Context& context) const {
    return fmt::formatter<std::string_view>::format(said.text, context);
  }
};

namespace shardplan {
namespace detail {

inline Said value_of(const Said& value, std::string_view) {
  return value;
}
template <typename T>
Said value_of(const T& value, std::string_view field) {
  return Said(fmt::vformat(field, fmt::make_format_args(value)));
}

/// The fields of a pattern, "{}" or "{:.0f}", in their order. Braces that are doubled are text.
std::vector<std::string_view> fields_of(std::string_view pattern);

}  // namespace detail

/// A sentence with values, each in a field of its own: fields are neither numbered nor named.
template <typename... Values>
Said say(fmt::format_string<Values...> pattern, const Values&... values) {
  const fmt::string_view words = pattern;
  Said said(fmt::vformat(words, fmt::make_format_args(values...)));
  said.pattern = std::string_view(words.data(), words.size());
  const std::vector<std::string_view> fields = detail::fields_of(said.pattern);
  auto field = fields.begin();
  (said.values.push_back(detail::value_of(values, *field++)), ...);
  return said;
}

}  // namespace shardplan
