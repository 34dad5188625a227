// Where the ranks of each group are.
#pragma once

#include <array>

#include "plan/group.h"
#include "plan/plan.h"

namespace shardplan {

/// Ranks are numbered as the frameworks do: tensor-parallel ones next to each other, then those of
/// a sequence, then those with other samples, and pipeline stages furthest apart.
std::array<GroupShape, kGroupCount> group_shapes(const Plan& plan);

/// Communicators that training opens. DeepSpeed clones the world's group (utils/groups.py) and,
/// like Megatron, makes one for each degree; elsewhere a group of all ranks is the world's own.
std::int64_t communicators(const Plan& plan);

}  // namespace shardplan
