// How well jobs like this one were predicted: the measured runs that are most like it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "questions/accuracy.h"

namespace shardplan {

/// What the runs share with the job. Fewer than kFewestRuns runs say little: the next wider circle
/// is taken then.
enum class Likeness : std::uint8_t {
  framework_gpus_precision,
  framework_precision,
  framework,
  any,
};
inline constexpr std::int64_t kFewestRuns = 3;

struct LikeRecords {
  Likeness likeness = Likeness::any;
  GroupSummary errors;
  std::int64_t held_out = 0;      ///< of errors.records: in no fit of any constant
  std::vector<std::string> gpus;  ///< that they ran on, in the order of the records
  std::int64_t same_gpu = 0;      ///< of errors.records: on the job's own GPU
};

LikeRecords find_like_records(const Plan& plan, const RecordList& records);

}  // namespace shardplan
