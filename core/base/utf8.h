// UTF-8, a character at a time.
#pragma once

#include <cstddef>
#include <string_view>

namespace shardplan {

struct Utf8Character {
  char32_t code = 0;
  std::size_t bytes = 0;  ///< 0: the first byte begins no character
};

/// The first character of a text that is not empty. Refuses what Unicode does: surrogates, forms
/// longer than needed, codes past U+10FFFF (The Unicode Standard, table 3-7).
Utf8Character first_character(std::string_view text);

}  // namespace shardplan
