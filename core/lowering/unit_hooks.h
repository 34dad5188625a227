// What FSDP's Python does around a unit.
#pragma once

#include <cstdint>

namespace shardplan {

/// Of FSDP2's gather or reduction, in calls of Issue::hook (one of DTensor's redistributions).
/// Measured on a CPU in turns: a gather before and one after a block's forward pass and a reduction
/// take 2.5 to 3.5 times as long as that pass alone (tests/accuracy/measure/time_host_calls.py,
/// PyTorch 2.11; docs/explanation/time.md).
inline constexpr std::int32_t kHooksOfUnit = 4;
/// Of FSDP1's, which take as long: with 4 the simulated allocator has their host fall behind where
/// it did not, and reserves up to 5 % too little.
inline constexpr std::int32_t kHooksOfFlatUnit = 2;

}  // namespace shardplan
