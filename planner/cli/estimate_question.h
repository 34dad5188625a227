// What `estimate` is asked, and its answer.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/calibration_option.h"
#include "cli/job_answer.h"
#include "cli/job_options.h"

namespace shardplan::cli {

struct EstimateQuestion {
  JobOptions job;
  CalibrationOption calibration;
  CostTerms cost;

  /// Adds JOB and its flags. `command` writes to this object from then on.
  void add_to(CLI::App& command);
};

JobAnswer answer(const EstimateQuestion& question);

}  // namespace shardplan::cli
