// What FSDP's Python does around a unit.
#pragma once

#include <cstdint>

namespace shardplan {

/// Of a gather or a reduction, in calls of Issue::hook (one of DTensor's redistributions). Measured
/// on a CPU in turns: a gather before and one after a block's forward pass and a reduction take 2.5
/// to 3.5 times as long as that pass alone under FSDP2 and 2.6 to 3.3 times under FSDP1
/// (tests/accuracy/measure/host_costs/time_host_calls.py, PyTorch 2.11; docs/explanation/time.md).
inline constexpr std::int32_t kHooksOfUnit = 4;

}  // namespace shardplan
