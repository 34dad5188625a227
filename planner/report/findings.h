// Everything that a report says, asked once: the answers of the planner's questions about a job.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "load/job.h"
#include "load/record.h"
#include "questions/capacity.h"
#include "questions/compare.h"
#include "questions/cost.h"
#include "questions/fixes.h"
#include "questions/similar_records.h"
#include "report/found_search.h"
#include "simulator/timeline.h"

namespace shardplan::report {

/// What a report says of its own making.
struct Origin {
  std::string name;       ///< of the job: its file, or "" when flags alone make it
  std::string version;    ///< of the program
  std::string command;    ///< that writes the same report again
  std::string job;        ///< the job with all flags in it, as JSON text
  std::string directory;  ///< where its relative paths start
  /// Fields that an import took from what its trainer does: "framework: single".
  std::vector<std::string> taken_for_granted;
};

struct Findings {
  Job job;
  Calibration calibration;
  Origin origin;
  Estimate estimate;                           ///< of the worst rank
  std::vector<Estimate> ranks;                 ///< of every rank that may be the worst
  MemoryTimeline timeline;                     ///< of the worst rank
  std::vector<std::int64_t> blocks_of_chunks;  ///< of a pipeline, in the order of the network
  std::vector<Alternative> alternatives;
  std::vector<Fix> fixes;
  std::vector<ContextCapacity> capacities;  ///< of generation
  Cost cost;
  SimilarRecords like;
  std::optional<FoundSearch> search;  ///< when one was made, or its result given
};

/// Throws InputError for a job that cannot be estimated.
Findings find_out(Job job, const Calibration& calibration, const MeasuredRuns& runs, Origin origin);

}  // namespace shardplan::report
