// Where the ranks of each group are.
#pragma once

#include <array>

#include "plan/group.h"
#include "plan/plan.h"

namespace shardplan {

/// Ranks are numbered as the frameworks do: tensor-parallel ones next to each other, then those of
/// a sequence, then those with other samples, and pipeline stages furthest apart.
std::array<GroupShape, kGroupCount> group_shapes(const Plan& plan);

}  // namespace shardplan
