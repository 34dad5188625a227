#include "json/syntax_reason.h"

#include <array>
#include <optional>
#include <tuple>
#include <utility>

namespace shardplan {
namespace {

/// What is before the last `mark`, and what is behind it.
std::optional<std::pair<std::string_view, std::string_view>> parted(std::string_view text,
                                                                    std::string_view mark) {
  const std::size_t at = text.rfind(mark);
  if (at == std::string_view::npos) return std::nullopt;
  return std::pair(text.substr(0, at), text.substr(at + mark.size()));
}

/// nlohmann's names of tokens, and what people call them; signs are the same.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kTokens{{
    {"string literal", "a string"},
    {"number literal", "a number"},
    {"true literal", "true"},
    {"false literal", "false"},
    {"null literal", "null"},
    {"end of input", "the end of the text"},
    {"'[', '{', or a literal", "a value"},
}};

Said plain(std::string_view token) {
  for (const auto& [name, words] : kTokens)
    if (token == name) return Said(words);
  return Said(token);
}

Said found(std::string_view what, std::string_view expected) {
  return say("found {}, expected {}", plain(what), plain(expected));
}

}  // namespace

/// "[json.exception.parse_error.101] parse error at line 1, column 9: syntax error while parsing
/// object key - unexpected '}'; expected string literal". In place of "unexpected" a reason of the
/// lexer's may stand, and then "; last read: '...'".
Said json_reason(std::string_view what) {
  constexpr std::string_view kUnexpected = "unexpected ";
  if (const auto prefix = what.find("] "); what.starts_with('[') && prefix != what.npos)
    what.remove_prefix(prefix + 2);
  const std::size_t syntax = what.find("syntax error");
  const std::size_t reason = what.find(" - ", syntax);
  if (syntax == what.npos || reason == what.npos) return Said(what);
  what.remove_prefix(reason + 3);
  std::string_view expected;
  if (const auto parts = parted(what, "; last read: ")) {
    const auto read = parted(parts->second, "; expected ");
    return say("{}, last read: {}", Said(parts->first), Said(read ? read->first : parts->second));
  }
  if (const auto parts = parted(what, "; expected ")) std::tie(what, expected) = *parts;
  if (!what.starts_with(kUnexpected)) return Said(what);
  what.remove_prefix(kUnexpected.size());
  return expected.empty() ? say("unexpected {}", plain(what)) : found(what, expected);
}

/// "Error while parsing key-value pair: expected value, saw '='".
Said toml_reason(std::string_view description) {
  constexpr std::string_view kExpected = "expected ";
  if (const auto start = description.find(": ");
      description.starts_with("Error while parsing ") && start != description.npos)
    description.remove_prefix(start + 2);
  const auto parts = parted(description, ", saw ");
  if (!parts || !parts->first.starts_with(kExpected)) return Said(description);
  return found(parts->second, parts->first.substr(kExpected.size()));
}

}  // namespace shardplan
