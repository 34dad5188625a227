// Memory of one GPU that several ranks of a process share, each with streams of its own. NCCL takes
// no two ranks on one GPU, so they exchange by copies and sums on it.
#pragma once

#include <memory>

#include "comm/common_memory.h"
#include "device/backend.h"

namespace shardplan::validator {

/// `backend` must be of make_cuda_backend. Throws DeviceError in a build without CUDA.
std::unique_ptr<CommonMemory> gpu_memory(Backend& backend);

}  // namespace shardplan::validator
