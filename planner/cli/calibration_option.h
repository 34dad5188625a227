// --calibration: rates and constants of another machine than the built-in one. --machine: those
// moved to the host that `shardplan probe` measured, and corrected by what `shardplan anchor`
// found.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "load/calibration.h"
#include "load/job.h"
#include "load/machine.h"

namespace shardplan::cli {

class CalibrationOption {
 public:
  void add_flags(CLI::App& command);

  /// Throws InputError when the file's calibration, or the anchor's step, is of another kind of GPU
  /// than the job's, unless that was asked for; and when --machine names a host that the
  /// calibration cannot be compared with, or corrects another calibration.
  Calibration load_for(const Job& job) const;

  /// What --machine names; empty without.
  Machine machine() const;

 private:
  Calibration unmoved_for(const Job& job) const;
  void move_to(const MeasuredHost& host, Calibration& calibration, const Job& job) const;
  void correct_by(const Anchor& anchor, Calibration& calibration, const Job& job) const;

  std::string file_;     ///< "": the built-in one
  std::string machine_;  ///< "": the calibration's own
  bool any_gpu_ = false;
};

}  // namespace shardplan::cli
