// An estimate with what it is about: the program of the step, and the ranks that need other than
// the worst one. Each program is lowered and simulated once for all of it.
#pragma once

#include <vector>

#include "estimate/estimate.h"
#include "lowering/rlhf/roles.h"

namespace shardplan {

struct DetailedEstimate {
  Estimate estimate;
  /// Where ranks differ: the estimate of every rank that may be the worst, rank 0 first; the others
  /// need no more than these.
  std::vector<Estimate> ranks;
  Program program;  ///< of the rank that `estimate` is about
};

/// Ranks that differ are estimated on as many threads as the machine has.
DetailedEstimate estimate_in_detail(const Model& model, const Plan& plan,
                                    const Calibration& calibration);
DetailedEstimate estimate_in_detail(const Rlhf& rlhf, const Calibration& calibration);

}  // namespace shardplan
