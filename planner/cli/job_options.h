// A job on the command line: a file, and a flag for each of its fields. Flags override the file.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/import.h"
#include "job/fields.h"
#include "json/document.h"
#include "load/calibration.h"
#include "load/job.h"

namespace shardplan::cli {

class JobOptions {
 public:
  /// Adds the positional JOB: a job file, files that an import understands, or a model; and behind
  /// them a cluster.
  void add_files(CLI::App& command, const std::string& help =
                                        "a job file, or a trainer's files, flags override them; or "
                                        "MODEL CLUSTER, as for fit");

  /// Adds the flags of all fields to `command`, but for one that it has a meaning of its own for.
  void add_flags(CLI::App& command, std::string_view except = {});

  /// The job's text after the flags: `base` is what the command itself sets (fit's positional
  /// arguments and defaults), under the file, under the flags.
  Json merged(const Json& base) const;
  /// The same over `usual()`.
  Json merged() const;

  /// The fields that flags set, alone.
  Json of_flags() const;

  /// Loads what `merged` gave, with what was taken for granted for a MODEL without a job.
  Job load(const Json& job) const;

  /// Whether the flag was on the command line.
  bool given(std::string_view flag) const;
  /// What `fit` takes for granted too, where words and flags alone say the job: every block is
  /// checkpointed.
  Json usual() const;
  /// Whether that is assumed and no flag says it.
  bool assumes_checkpointing() const;
  /// A line that says so, for answers that have no list of what was assumed; or "".
  std::string assumed_checkpointing() const;

  /// Fields that an import took from what its trainer does, each with its value: "framework: ddp".
  std::vector<std::string> taken_for_granted() const { return taken_for_granted_; }

  std::string file;                ///< the first of `files`; "" when the job is words and flags
  std::vector<std::string> files;  ///< one job, or what is imported as one

 private:
  struct Flag {
    const JobField* field = nullptr;
    std::string value;  ///< as typed
    CLI::Option* option = nullptr;
  };
  /// What the files say: the job as it is written, or what an import makes of them, told on
  /// stderr once. `under` is what else is known.
  Json of_files(const Json& under) const;
  /// What an import makes of `jobs`, with what the command line says besides.
  Json imported(const std::vector<std::string>& jobs, const Json& under, const Json& said) const;
  bool only_words() const;  ///< `files` are a model's name and a cluster, or nothing
  /// All of them, but for those that set fields below `except`.
  void set_flags(Json& job, std::string_view except = {}) const;
  void take_method(Json& job) const;

  std::vector<Flag> flags_;
  mutable std::optional<Json> imported_;
  mutable std::vector<std::string> taken_for_granted_;
};

/// Throws InputError for an imported job that cannot be estimated, about the key that says so.
void check(const importing::Imported& imported, const Json& job, const std::string& file);

/// Loads a merged job with the built-in hardware; `file` names it in messages.
Job load(const Json& job, const std::string& file);

}  // namespace shardplan::cli
