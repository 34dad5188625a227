// --calibration: rates and constants of another machine than the built-in one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "load/calibration.h"
#include "load/job.h"

namespace shardplan::cli {

class CalibrationOption {
 public:
  void add_flags(CLI::App& command);

  /// Throws InputError when the file's calibration is of another kind of GPU than the job's, unless
  /// that was asked for.
  Calibration load_for(const Job& job) const;

 private:
  std::string file_;  ///< "": the built-in one
  bool any_gpu_ = false;
};

}  // namespace shardplan::cli
