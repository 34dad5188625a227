#include "base/diagnostic.h"

#include <fmt/format.h>

#include "base/printable.h"

namespace shardplan {
namespace {

/// Longer names are no names, and longer lists are not read.
constexpr std::size_t kLongestPlace = 300, kLongestSentence = 2000;

}  // namespace

std::string to_string(const Diagnostic& d) {
  std::string text;
  if (!d.file.empty()) text += printable(d.file, kLongestPlace) + ": ";
  if (d.position.known())
    text += fmt::format("line {}, column {}: ", d.position.line, d.position.column);
  if (!d.key.empty()) text += printable(d.key, kLongestPlace) + ": ";
  text += printable(d.message.text, kLongestSentence);
  if (!d.expected.empty())
    text += fmt::format("; expected {}", printable(d.expected.text, kLongestSentence));
  if (!d.nearest.empty())
    text += fmt::format("; did you mean '{}'?", printable(d.nearest, kLongestPlace));
  return text;
}

}  // namespace shardplan
