// Device memory of NCCL's communicators, allocation by allocation. docs/explanation/memory.md,
// "Communicators".
#pragma once

#include <cstdint>
#include <vector>

#include "parallel/communicators.h"

namespace shardplan {

/// What NCCL holds of a GPU beside its communicators' buffers, fitted; and how many channels it
/// opens, which follows from the machine's links.
struct NcclOverhead {
  std::int64_t modules_bytes = 0;         ///< its kernels: loaded with the first communicator
  std::int64_t collective_bytes = 0;      ///< once, when ranks first run a collective
  std::int64_t point_to_point_bytes = 0;  ///< once, when one first sends or receives
  std::int64_t channels = 0;              ///< each with a ring; 0: not known, nothing is counted
  std::int64_t channels_alone = 0;        ///< of a communicator of one rank
  std::int64_t channels_to_peer = 0;      ///< that a send or receive within a node is spread over
};

/// Of one communicator, beside what all of a process share.
std::int64_t communicator_bytes(const Communicator& c, const NcclOverhead& overhead);

/// Of one process that opens all of `list`.
std::int64_t nccl_bytes(const std::vector<Communicator>& list, const NcclOverhead& overhead);

/// The same with everything connected over the first communicator, the world's, that NCCL can:
/// rings, trees and every GPU of the node with every other. What a program may call beside the
/// step itself (a benchmark, a shuffle of data, another library) opens no more than that.
std::int64_t nccl_bytes_at_most(const std::vector<Communicator>& list,
                                const NcclOverhead& overhead);

}  // namespace shardplan
