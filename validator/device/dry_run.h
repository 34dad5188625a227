// No device: operations do nothing, memory is addresses from 0. A step that runs on it allocates
// what the real step allocates, in the same order, because it is the same code.
#pragma once

#include <functional>
#include <memory>

#include "device/backend.h"
#include "device/communicator.h"
#include "device/host_compute.h"

namespace shardplan::validator {

/// How much workspace the back end that it stands for would ask for.
using WorkspaceRule = std::function<std::int64_t(const StepShapes&)>;

std::unique_ptr<Backend> make_dry_backend(WorkspaceRule workspace);

/// Cores that do nothing.
std::unique_ptr<HostCompute> make_dry_host();

/// Rank `rank` of `size` that hears and says nothing.
std::unique_ptr<Communicator> make_dry_communicator(int rank, int size);

}  // namespace shardplan::validator
