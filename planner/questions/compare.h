// The same job at every ZeRO stage and offload, side by side.
#pragma once

#include <string>
#include <vector>

#include "estimate/estimate.h"

namespace shardplan {

struct Alternative {
  std::string name;  ///< "ZeRO-2 + optimizer on the host"
  Plan plan;
  Estimate estimate;
  bool is_current = false;  ///< the job as it was asked
};

std::vector<Alternative> compare_stages(const Model& model, const Plan& plan,
                                        const Calibration& calibration);

}  // namespace shardplan
