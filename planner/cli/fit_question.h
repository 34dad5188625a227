// What `fit` is asked, and its answer.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

#include "cli/calibration_option.h"
#include "cli/job_answer.h"
#include "cli/job_options.h"

namespace shardplan::cli {

struct FitQuestion {
  std::string model, cluster;
  JobOptions job;
  CalibrationOption calibration;
  CostTerms cost;

  /// Adds MODEL and CLUSTER. `command` writes to this object from then on.
  void add_words(CLI::App& command);
  void add_flags(CLI::App& command);
  /// Both.
  void add_to(CLI::App& command);
  /// Whether nothing says which model.
  bool lacks_model() const;
  /// Whether nothing says which GPUs. A whole job has its own.
  bool lacks_cluster() const;
};

/// With `fixes` of the changes that would help, at most.
JobAnswer answer(const FitQuestion& question, std::size_t fixes = kAllFixes);

}  // namespace shardplan::cli
