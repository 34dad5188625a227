// The NCCL communicators that a process opens, and what its step sends over each.
//
// Every one has device memory of its own (estimate/nccl_memory.h). docs/explanation/memory.md,
// "Communicators", has the frameworks' lists with their sources, and what was measured of them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/group.h"
#include "plan/plan.h"

namespace shardplan {

/// Ranks that this one sends to and receives from outside collectives: stages, a ring of keys and
/// values, the parts of an all-to-all.
struct PeerConnections {
  std::int64_t sends = 0, receives = 0;
};

struct Communicator {
  std::string_view name;  ///< "world", "tensor"
  GroupShape shape;
  /// Whether all-reduces, all-gathers, reduce-scatters, broadcasts or barriers go over it. Of a
  /// group of one rank NCCL makes copies, and connects nothing.
  bool collectives = false;
  PeerConnections peers;
};

/// Those of rank `rank`, in the order in which they are opened.
std::vector<Communicator> communicators(const Plan& plan, std::int64_t rank);

/// CUDA contexts that other ranks' processes keep on the fullest GPU. DeepSpeed's AutoTP sends the
/// first batch to the ranks of a tensor-parallel group as pickled tensors, which each of them
/// unpickles on the GPU they come from (engine.py broadcast_and_check).
std::int64_t foreign_contexts(const Plan& plan);

}  // namespace shardplan
