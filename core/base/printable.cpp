#include "base/printable.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/utf8.h"

namespace shardplan {
namespace {

/// Characters that a terminal obeys, or that make text read in another order than it is stored.
bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0x2028 || c == 0x2029;
}

std::string written_out(char32_t c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return c < 0x100 ? fmt::format("\\x{:02x}", static_cast<unsigned>(c))
                       : fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  }
}

std::string printed(std::string_view text, std::size_t longest, std::string_view kept) {
  std::string out;
  for (std::size_t count = 0; !text.empty(); ++count) {
    if (count == longest) return out + "...";
    const Utf8Character c = first_character(text);
    if (c.bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
      text.remove_prefix(1);
      continue;
    }
    if (is_control(c.code) && kept.find(text.front()) == std::string_view::npos)
      out += written_out(c.code);
    else
      out += text.substr(0, c.bytes);
    text.remove_prefix(c.bytes);
  }
  return out;
}

/// What the program itself writes beyond ASCII.
constexpr std::array<std::pair<char32_t, std::string_view>, 27> kSpelled{{
    {U'×', "x"},   {U'·', "*"},   {U'–', "-"},   {U'—', "-"},    {U'−', "-"},   {U'‑', "-"},
    {U'→', "->"},  {U'←', "<-"},  {U'≤', "<="},  {U'≥', ">="},   {U'≈', "~"},   {U'±', "+-"},
    {U'…', "..."}, {U'“', "\""},  {U'”', "\""},  {U'‘', "'"},    {U'’', "'"},   {U'µ', "u"},
    {U'μ', "u"},   {U'²', "^2"},  {U'³', "^3"},  {U'√', "sqrt"}, {U'Σ', "sum"}, {U'Ψ', "P"},
    {U'ᵀ', "^T"},  {U'€', "EUR"}, {U'°', "deg"},
}};

std::string_view spelled(char32_t c) {
  for (const auto& [character, ascii] : kSpelled)
    if (character == c) return ascii;
  if (c >= 0x2588 && c <= 0x258C) return "#";  // blocks of a bar: half a cell and more
  if (c >= 0x258D && c <= 0x258F) return " ";  // less than half
  return "?";
}

}  // namespace

std::string printable(std::string_view text, std::size_t longest) {
  return printed(text, longest, "");
}

std::string printable_lines(std::string_view text) {
  return printed(text, static_cast<std::size_t>(-1), "\n\t");
}

std::string in_ascii(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Character c = first_character(text);
    if (c.bytes == 1)
      out += text.front();
    else
      out += c.bytes == 0 ? "?" : spelled(c.code);
    text.remove_prefix(c.bytes == 0 ? 1 : c.bytes);
  }
  return out;
}

}  // namespace shardplan
