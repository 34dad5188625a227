// Ranks as threads of one process: collectives through memory that all of them reach.
#pragma once

#include <chrono>
#include <memory>

#include "comm/common_memory.h"
#include "comm/meeting.h"
#include "comm/patience.h"
#include "device/communicator.h"

namespace shardplan::validator {

/// A rank that waits for the others longer than `patience` throws PeerFailure.
std::shared_ptr<Meeting> make_meeting(int ranks,
                                      std::chrono::milliseconds patience = Patience{}.silence);

std::unique_ptr<Communicator> make_thread_communicator(
    std::shared_ptr<Meeting> meeting, int rank,
    std::unique_ptr<CommonMemory> memory = host_memory());

}  // namespace shardplan::validator
