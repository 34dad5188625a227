// A job on the command line: a file, and a flag for each of its fields. Flags override the file.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "job/fields.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/job.h"

namespace shardplan::cli {

class JobOptions {
 public:
  /// Adds the flags of all fields to `command`.
  void add_flags(CLI::App& command);

  /// The job's text after the flags: `base` is what the command itself sets (fit's positional
  /// arguments and defaults), under the file, under the flags.
  Json merged(const Json& base) const;

  /// Whether the flag was on the command line.
  bool given(std::string_view flag) const;

  std::string file;  ///< "" when the job comes from flags alone

 private:
  struct Flag {
    const JobField* field = nullptr;
    std::string value;  ///< as typed
    CLI::Option* option = nullptr;
  };
  std::vector<Flag> flags_;
};

/// Loads a merged job with the built-in hardware; `file` names it in messages.
Job load(const Json& job, const std::string& file);

}  // namespace shardplan::cli
