// Ranks as processes: collectives of host memory through rank 0.
#pragma once

#include <memory>

#include "comm/star.h"
#include "device/communicator.h"

namespace shardplan::validator {

std::unique_ptr<Communicator> make_process_communicator(std::unique_ptr<Star> star);

}  // namespace shardplan::validator
