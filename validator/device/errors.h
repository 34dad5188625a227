// The failures of a device and of the other ranks. The program's edge turns each into an exit code.
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
  explicit PeerFailure(const std::string& text, int suspect = -1)
      : std::runtime_error(text), rank(suspect) {}
  int rank;  ///< of the run, that this one waited for; -1: it cannot tell
};

}  // namespace shardplan::validator
