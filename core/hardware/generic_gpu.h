// A GPU of which only the memory is known: "will 7B fit on 4x40GB?"
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hardware/catalog.h"

namespace shardplan {

/// Usable memory from typical_usable(). The rates are those of the slowest catalogue GPU (by fp16)
/// of the nearest memory size, without NVLink; all are listed as unverified and noted.
Gpu generic_gpu(std::int64_t memory_gb, const HardwareCatalog& catalog,
                std::vector<std::string>& notes);

}  // namespace shardplan
