// Flags as people type them: with '_' for '-', under another trainer's name, or misspelt.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace shardplan::cli {

/// A flag that the command does not have.
class UnknownFlag : public CLI::ExtrasError {
 public:
  UnknownFlag(const CLI::App& command, const std::string& flag, const std::string& nearest);

  std::string flag;     ///< as it was typed
  std::string nearest;  ///< of the command's own, or ""
};

/// The arguments after a command's name with every flag under the name that `command` has for it:
/// --ds_config, --zero 3, --seq-len=8k, --bf16. A flag without its "true" gets one. Throws
/// UnknownFlag.
std::vector<std::string> spoken_flags(const std::vector<std::string>& arguments,
                                      const CLI::App& command);

}  // namespace shardplan::cli
