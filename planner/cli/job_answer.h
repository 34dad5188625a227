// What the commands about one job answer, for the program and for the C++ library.
#pragma once

#include <optional>
#include <vector>

#include "estimate/estimate.h"
#include "json/document.h"
#include "load/job.h"
#include "questions/cost.h"
#include "questions/fixes.h"

namespace shardplan::cli {

struct JobAnswer {
  Job job;
  Calibration calibration;
  Estimate estimate;
  Cost cost;
  std::optional<std::vector<Fix>> fixes;  ///< where they were asked for
};

/// shardplan.estimate/1, with the cost and the fixes.
Json to_json(const JobAnswer& answer);

}  // namespace shardplan::cli
