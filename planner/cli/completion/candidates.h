// What a word of a command line can be: the shells' completion asks the program itself.
#pragma once

#include <string>
#include <vector>

#include "cli/output.h"

namespace shardplan::cli {

/// The command that completion scripts call with the words behind the program's name; --help does
/// not list it.
inline constexpr std::string_view kCompletion = "__complete";

struct Candidate {
  std::string word;
  std::string meaning;  ///< a few words, or ""
};

/// What the last of `words` can be, of which its beginning is typed: commands, flags, a flag's
/// values, models, clusters. Nothing where a file is wanted.
std::vector<Candidate> candidates(const std::vector<std::string>& words);

/// Prints them, a line each: the word, a tab, its meaning.
Exit complete(const std::vector<std::string>& words);

}  // namespace shardplan::cli
