// The failures of a run that are not bad input. The program's edge turns each into an exit code.
#pragma once

#include <stdexcept>
#include <string>

namespace shardplan::validator {

/// A CUDA, cuBLAS, cuDNN, NCCL or MPI call failed: exit code 5.
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Another rank failed or stopped answering; this one only follows: exit code 5.
struct PeerFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The arena has no room for a tensor; `what` names it and lists what is alive: exit code 5.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The loss or the gradients are not numbers any more: exit code 6.
struct Diverged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace shardplan::validator
