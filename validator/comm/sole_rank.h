// The communicator of a run of one rank on any device: NCCL would take half a GiB for nothing.
#pragma once

#include <memory>

#include "device/backend.h"
#include "device/communicator.h"

namespace shardplan::validator {

std::unique_ptr<Communicator> make_sole_communicator(Backend& backend);

}  // namespace shardplan::validator
