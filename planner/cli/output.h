// Where an answer goes, and what a program says when it ends.
#pragma once

#include <string>

namespace shardplan::cli {

/// Exit codes of the contract; `lint --strict` says 1 where there are warnings only; 130 as shells
/// have it for a program that SIGINT ended.
enum class Exit : int {
  done = 0,
  internal = 1,
  warnings = 1,
  usage = 2,
  bad_input = 3,
  does_not_fit = 4,
  interrupted = 130
};

struct Output {
  std::string format = "text";  ///< text or json
  std::string file;             ///< "": standard output

  bool json() const { return format == "json"; }
  /// Writes the answer. A file is written beside its place and renamed, so that it is never half
  /// there; throws InputError when it cannot be.
  void write(const std::string& answer) const;
};

}  // namespace shardplan::cli
