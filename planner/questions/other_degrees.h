// Plans that divide a network otherwise: one degree halved, doubled or left out.
#pragma once

#include <string>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

struct OtherDegrees {
  std::string name;  ///< "tensor 4 instead of 8"
  Plan plan;         ///< with the same global batch
};

/// Of the degrees that `plan` has, those values that model, cluster and framework allow.
std::vector<OtherDegrees> other_degrees(const Model& model, const Plan& plan);

}  // namespace shardplan
