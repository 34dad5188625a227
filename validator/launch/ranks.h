// The ranks of one process, a thread each.
#pragma once

#include <functional>
#include <memory>

#include "comm/patience.h"
#include "device/backend.h"
#include "device/communicator.h"

namespace shardplan::validator {

class Lookout;

/// What a rank computes on and talks through. The communicator may use the backend: it goes first.
struct RankDevice {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Communicator> communicator;
};

/// Makes the device of the calling thread's rank.
using MakeRank = std::function<RankDevice(int rank)>;

/// Runs `body` for ranks first_rank, first_rank + 1, ... of this process and returns when all are
/// done. When one throws, the others' collectives are aborted and its exception is thrown here, one
/// that is no PeerFailure if there is any. So it is when `lookout` (if there is one) says that a
/// rank of another process is lost. A rank that does not notice is left behind after 5 seconds:
/// PeerFailure is thrown, and the process is to end without waiting for its threads.
void run_ranks(int first_rank, int count, const MakeRank& make,
               const std::function<void(RankDevice&)>& body, Lookout* lookout = nullptr);

/// `world` host ranks that meet in this process, each with `capacity_bytes` (0: all) of memory.
MakeRank host_ranks(int world, std::int64_t capacity_bytes, Patience patience = {});

}  // namespace shardplan::validator
