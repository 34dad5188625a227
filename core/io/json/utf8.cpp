#include "json/utf8.h"

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "json/text_position.h"

namespace shardplan {
namespace {

/// Where the first byte is that belongs to no character; npos without one.
std::size_t first_odd_byte(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t more = lead < 0x80              ? 0
                             : (lead >> 5) == 0b110   ? 1
                             : (lead >> 4) == 0b1110  ? 2
                             : (lead >> 3) == 0b11110 ? 3
                                                      : text.size();
    if (i + more >= text.size() && more > 0) return i;
    for (std::size_t k = 1; k <= more; ++k)
      if ((static_cast<unsigned char>(text[i + k]) >> 6) != 0b10) return i;
    const bool overlong =
        (more == 1 && lead < 0xC2) ||
        (more == 2 && lead == 0xE0 && static_cast<unsigned char>(text[i + 1]) < 0xA0) ||
        (more == 2 && lead == 0xED && static_cast<unsigned char>(text[i + 1]) > 0x9F) ||
        (more == 3 &&
         (lead > 0xF4 || (lead == 0xF0 && static_cast<unsigned char>(text[i + 1]) < 0x90) ||
          (lead == 0xF4 && static_cast<unsigned char>(text[i + 1]) > 0x8F)));
    if (overlong) return i;
    i += more + 1;
  }
  return text.npos;
}

std::string hexadecimal(char byte) {
  return fmt::format("0x{:02X}", static_cast<unsigned char>(byte));
}

}  // namespace

bool is_utf8(std::string_view text) {
  return first_odd_byte(text) == text.npos;
}

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
