// Text of users and their files, as a terminal may show it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace shardplan {

/// `text` on one line that no terminal obeys: control characters, marks that turn the direction of
/// writing and bytes that are not UTF-8 are written out (\n, \x1b, \u202e), and what is longer than
/// `longest` characters ends with "...".
std::string printable(std::string_view text, std::size_t longest = static_cast<std::size_t>(-1));

/// The same for a text of many lines: line ends and tabs stay, nothing is cut.
std::string printable_lines(std::string_view text);

/// `text` in ASCII, for places that show nothing else: "×" is "x", "–" is "-", a bar's blocks are
/// "#"; what has no such sign is "?".
std::string in_ascii(std::string_view text);

}  // namespace shardplan
