// The planner's side of every framework.
#pragma once

#include <span>

#include "frameworks/planning.h"
#include "plan/plan.h"

namespace shardplan {

/// In the order in which searches name them.
std::span<const FrameworkPlanning* const> all_planning();

const FrameworkPlanning& planning_of(FrameworkKind kind);
inline const FrameworkPlanning& planning_of(const Plan& plan) {
  return planning_of(plan.framework.kind);
}

/// The frameworks that a search can try.
std::vector<FrameworkKind> searchable_frameworks();

/// In a sentence: "deepspeed, fsdp2, ddp, single or megatron".
std::string searchable_words();

}  // namespace shardplan
