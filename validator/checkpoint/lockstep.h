// Ranks that work side by side for long: none waits so long for another that it takes it for dead.
#pragma once

#include "device/backend.h"
#include "device/communicator.h"
#include "memory/tensor.h"

namespace shardplan::validator {

class Lockstep {
 public:
  /// `word`: [1] on the device, overwritten. `world`: all ranks, each with a Lockstep of its own.
  Lockstep(Backend& device, Communicator& world, const Tensor& word)
      : device_(device), world_(world), word_(word), done_(device.new_event()) {}

  /// One round, some seconds after the last at most. Every rank calls it until it returns false:
  /// until no rank was busy.
  bool any_busy(bool busy);
  /// Until all ranks have come here.
  void wait() {
    while (any_busy(false)) {
    }
  }

 private:
  Backend& device_;
  Communicator& world_;
  Tensor word_;
  Event done_;
};

/// Bytes between two rounds: a few seconds of a slow disk.
inline constexpr std::int64_t kRoundBytes = std::int64_t{256} << 20;

}  // namespace shardplan::validator
