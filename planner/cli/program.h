// The command line as a function, for the program and for others that ask the same questions.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "cli/output.h"

namespace shardplan::cli {

/// Arguments that no command takes.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Runs the command that `arguments` name, those behind the program's own name. What it prints goes
/// to the terminal, or to a Transcript. Throws UsageError, InputError, OutputError, and
/// OverflowError for a job that is too large.
Exit run_program(const std::vector<std::string>& arguments);

}  // namespace shardplan::cli
