#include "json/utf8.h"

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "base/utf8.h"
#include "json/text_position.h"

namespace shardplan {
namespace {

/// Where the first byte is that belongs to no character; npos without one.
std::size_t first_odd_byte(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t bytes = first_character(text.substr(i)).bytes;
    if (bytes == 0) return i;
    i += bytes;
  }
  return text.npos;
}

std::string hexadecimal(char byte) {
  return fmt::format("0x{:02X}", static_cast<unsigned char>(byte));
}

}  // namespace

void require_utf8(std::string_view text, const std::string& file) {
  if (text.find('\0') != text.npos)
    throw InputError({.file = file,
                      .message = "is a binary file",
                      .expected = "a text file in UTF-8",
                      .rule = "json.syntax"_rule});
  const std::size_t odd = first_odd_byte(text);
  if (odd == text.npos) return;
  throw InputError({.file = file,
                    .message = "is no text in UTF-8",
                    .expected = fmt::format("UTF-8, and no byte {}", hexadecimal(text[odd])),
                    .position = position_of(text, odd + 1),
                    .rule = "json.syntax"_rule});
}

}  // namespace shardplan
