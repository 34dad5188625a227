// The host's cores as a step uses them beside its device.
#pragma once

#include <memory>

#include "device/host_compute.h"
#include "kernels/host/crew/cpus.h"

namespace shardplan::validator {

/// This rank's part of the machine's cores, with the best instructions that they have.
std::unique_ptr<HostCompute> make_host_crew(const host::RankShare& share);

}  // namespace shardplan::validator
