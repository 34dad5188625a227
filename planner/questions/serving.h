// The same model served by engines of other sizes: how the GPUs are shared out among engines, and
// what each way gives.
#pragma once

#include <optional>
#include <vector>

#include "estimate/estimate.h"
#include "load/job.h"
#include "questions/cost.h"

namespace shardplan {

struct ServingChoice {
  std::int64_t tensor_parallel = 1;  ///< GPUs of one engine
  Estimate estimate;
  std::optional<double> dollars_per_million;  ///< new tokens, on demand; none without a price
  bool asked = false;                         ///< the job's own
};

/// Every degree that divides the model's heads and the GPUs within a node, the job's own among
/// them. `job` has an engine.
std::vector<ServingChoice> serving_choices(const Job& job, const Calibration& calibration,
                                           const CostTerms& terms);

/// Of a million new tokens at `tokens_per_second`; none where either is not known.
std::optional<double> dollars_per_million(const Plan& plan, double tokens_per_second,
                                          const CostTerms& terms);

}  // namespace shardplan
