// The CUDA back end's way in, without a CUDA header. cuda_absent.cpp answers in its place where the
// program was built without a CUDA toolkit.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "comm/communicator.h"
#include "kernels/backend.h"

namespace shardplan::validator {

/// GPUs that this process can use: 0 without a driver, and in a build without CUDA.
int cuda_device_count();

/// What the CUDA back end will need of workspace, for dry runs on machines without a GPU. Throws
/// DeviceError in a build without CUDA.
std::int64_t cuda_workspace_bytes(const StepShapes& shapes);

/// Takes device `device` for the calling thread and measures what context and libraries take.
std::unique_ptr<Backend> make_cuda_backend(int device);

/// Names one NCCL communicator; made by rank 0, sent to the others (launch/).
using NcclId = std::array<std::byte, 128>;
NcclId new_nccl_id();

/// `backend` must be of make_cuda_backend. Blocks until all ranks have come. A run of one rank gets
/// a communicator without NCCL.
std::unique_ptr<Communicator> make_nccl_communicator(Backend& backend, const NcclId& id, int rank,
                                                     int size);

}  // namespace shardplan::validator
