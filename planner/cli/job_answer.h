// What the commands about one job answer, for the program and for the C++ library.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "json/document.h"
#include "load/job.h"
#include "questions/cost.h"
#include "questions/fixes.h"
#include "questions/serving.h"

namespace shardplan::cli {

struct JobAnswer {
  Job job;
  Calibration calibration;
  Estimate estimate;
  Cost cost;
  std::optional<std::vector<Fix>> fixes;  ///< where they were asked for
  std::vector<ServingChoice> serving;     ///< of a job that an engine serves
};

/// The estimate of `job` and what follows from it; fixes are left out.
JobAnswer answer_job(Job job, Calibration calibration, const CostTerms& terms, Estimate estimate);

/// The whole answer of `fit`, or of `estimate` where there are no fixes.
std::string text_of(const JobAnswer& answer);

/// shardplan.estimate/1, with the cost and the fixes.
Json to_json(const JobAnswer& answer);

}  // namespace shardplan::cli
