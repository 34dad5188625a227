#pragma once

#include <cstdint>

#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

/// Bytes that a compiled step may reserve on top because a smaller tensor was cut out of its
/// largest block; for upper bounds. 0 where optimizer states fill what the first step left cached.
std::int64_t cut_at_most(const Program& program, const Plan& plan);

}  // namespace shardplan
