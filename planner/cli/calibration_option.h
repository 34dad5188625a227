// --calibration: rates and constants of another machine than the built-in one. --machine: those
// moved to the host that `shardplan probe` measured.
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
  /// that was asked for, or when --machine names a host that the calibration cannot be compared
  /// with.
  Calibration load_for(const Job& job) const;

 private:
  Calibration unmoved_for(const Job& job) const;

  std::string file_;     ///< "": the built-in one
  std::string machine_;  ///< "": the calibration's own
  bool any_gpu_ = false;
};

}  // namespace shardplan::cli
