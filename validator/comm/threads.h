// Ranks as threads of one process: collectives through their common memory.
#pragma once

#include <chrono>
#include <memory>

#include "device/communicator.h"

namespace shardplan::validator {

class Meeting;  ///< where the ranks of one run meet

/// A rank that waits for the others longer than `patience` throws PeerFailure.
std::shared_ptr<Meeting> make_meeting(
    int ranks, std::chrono::milliseconds patience = std::chrono::seconds(25));

std::unique_ptr<Communicator> make_thread_communicator(std::shared_ptr<Meeting> meeting, int rank);

}  // namespace shardplan::validator
