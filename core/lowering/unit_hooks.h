// What FSDP's Python does around a unit.
#pragma once

#include <cstdint>

namespace shardplan {

/// Of a gather or of a reduction, in calls of Issue::hook (one of DTensor's redistributions): some
/// 790 Python frames and C calls and 27 operations (tests/accuracy/measure/count_host_calls.py,
/// PyTorch 2.11, FSDP 1 and 2 alike). Steps alone ask for 3; with those the simulated allocator has
/// FSDP1's host fall behind where it did not, and reserves 3 % too little in two runs of twelve.
inline constexpr std::int32_t kHooksOfUnit = 2;

}  // namespace shardplan
