// NCCL's way in, without a CUDA header. cuda_absent.cpp answers in its place where the program was
// built without a CUDA toolkit.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "comm/patience.h"
#include "device/backend.h"
#include "device/communicator.h"

namespace shardplan::validator {

/// Names one NCCL communicator; made by rank 0, sent to the others (launch/). Both functions throw
/// DeviceError in a build without CUDA.
using NcclId = std::array<std::byte, 128>;
NcclId new_nccl_id();

/// `backend` must be of make_cuda_backend. Blocks until all ranks have come. A run of one rank gets
/// a communicator without NCCL. A collective that others leave open for longer than
/// `patience.silence` throws PeerFailure.
std::unique_ptr<Communicator> make_nccl_communicator(Backend& backend, const NcclId& id, int rank,
                                                     int size, Patience patience = {});

}  // namespace shardplan::validator
