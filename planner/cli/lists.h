// Lists on the command line: "1,2,4".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"

namespace shardplan::cli {

/// The parts between commas, without empty ones.
std::vector<std::string> split_list(std::string_view text);

/// Whole numbers, also as 5e8; throws InputError naming `flag` for anything else or below `least`.
std::vector<std::int64_t> integer_list(const std::string& flag, std::string_view text,
                                       std::int64_t least);

/// The place of a name in `allowed`; throws with the nearest for another name.
std::size_t choice_of(const std::string& flag, const std::string& name,
                      const std::vector<std::string>& allowed);

/// A check of an option's word, which names the nearest one where it is none of `words`.
CLI::Validator word_among(std::vector<std::string> words);

/// The places of the names in `allowed`, each once.
std::vector<std::size_t> choice_list(const std::string& flag, std::string_view text,
                                     const std::vector<std::string>& allowed);

}  // namespace shardplan::cli
