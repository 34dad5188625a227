// One step of a job of any kind, run against the clock.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "estimate/calibration.h"
#include "load/job.h"
#include "program/program.h"
#include "timing/timeline.h"

namespace shardplan {

/// What one rank does. The trace points into the program.
struct SimulatedRank {
  std::int64_t rank = 0;
  std::string name;  ///< "rank 1024, stage 1 of 16"
  std::string what;  ///< that runs: "one step", "the prompt and 32 of 512 new tokens"
  std::unique_ptr<const Program> program;
  StepTimes times;
  Trace trace;
};

/// The ranks asked for, or those whose programs differ. Processes of generation and of several
/// models in turn are alike. Throws InputError for a rank that is not there.
std::vector<SimulatedRank> simulate_job(const Job& job, const Calibration& calibration,
                                        const std::vector<std::int64_t>& ranks);

}  // namespace shardplan
