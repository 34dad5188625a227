// Flags as people type them: with '_' for '-', under another trainer's name, or misspelt.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace shardplan::cli {

/// The arguments after a command's name with every flag under the name that `command` has for it:
/// --ds_config, --zero 3, --seq-len=8k, --bf16. A flag without its "true" gets one. Throws
/// InputError for a flag that is near none, with the nearest.
std::vector<std::string> spoken_flags(const std::vector<std::string>& arguments,
                                      const CLI::App& command);

}  // namespace shardplan::cli
