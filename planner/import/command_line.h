// Programs and their arguments in a shell script, with variables and arrays put in.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace shardplan::importing {

/// Stands behind an argument whose value is a variable that the script does not set.
inline constexpr std::string_view kUnset = "\x1a";

struct Word {
  std::string text;
  int line = 0;
};

struct Command {
  std::map<std::string, std::string> environment;  ///< variables that are set where it runs
  std::vector<Word> words;
};

/// The commands of a script, in order. Knows what such scripts use: comments, quotes, continued
/// lines, NAME=value, NAME=(words), $NAME, ${NAME}, ${NAME:-otherwise}, ${NAME[@]}, $((sums)). What
/// only a shell can know ($1, $(program)) is left out, and kUnset stands in its place where it is
/// all that follows an argument "--NAME"; of two assignments the last counts.
std::vector<Command> parse_shell(std::string_view script);

}  // namespace shardplan::importing
