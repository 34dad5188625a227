// Measured steps by kind of job and machine, for judging what one of them says of the others: our
// records by sitting, and those that others printed.
#pragma once

#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "load/calibration.h"
#include "questions/anchor.h"

namespace shardplan::anchored {

struct MeasuredRun {
  std::string group;  ///< framework, stage, trainer, offload, GPUs, sitting; published: whose
  std::string name;
  Job job;
  double measured = 0, predicted = 0;  ///< seconds of a step
  bool fitted = false;                 ///< on the kind of GPU that the calibration was fitted on
};

/// Groups of two runs at least, in the order of their names.
using Groups = std::vector<std::vector<MeasuredRun>>;
Groups groups_of_runs(const Calibration& calibration);

/// The mean absolute errors of a group's steps, relative to what was measured.
struct Errors {
  double as_predicted = 0;
  double anchored = 0;  ///< on each of the others in turn
};

/// Of at most kMostRuns of its runs, evenly spread.
inline constexpr std::size_t kMostRuns = 8;
Errors errors_of(const std::vector<MeasuredRun>& group, const Calibration& calibration);

}  // namespace shardplan::anchored
