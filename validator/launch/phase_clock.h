// Times of the phases of a step, apart.
#pragma once

#include <array>
#include <chrono>

#include "device/backend.h"
#include "memory/phases.h"

namespace shardplan::validator {

/// What the phases of one step take on the device, which they wait for: not a step to time whole.
class PhaseClock {
 public:
  explicit PhaseClock(Backend& device) : device_(device) {}

  void start() {
    device_.synchronize();
    since_ = Clock::now();
    running_ = true;
  }
  void at(Phase phase) {
    if (!running_) return;
    count();
    phase_ = phase;
  }
  void stop() {
    if (!running_) return;
    count();
    running_ = false;
  }
  const std::array<double, 3>& seconds() const { return seconds_; }

 private:
  using Clock = std::chrono::steady_clock;

  void count() {
    device_.synchronize();
    const auto now = Clock::now();
    const double seconds = std::chrono::duration<double>(now - since_).count();
    since_ = now;
    if (phase_ == Phase::forward) seconds_[0] += seconds;
    if (phase_ == Phase::backward) seconds_[1] += seconds;
    if (phase_ == Phase::step) seconds_[2] += seconds;
  }

  Backend& device_;
  Clock::time_point since_;
  Phase phase_ = Phase::forward;
  std::array<double, 3> seconds_{};
  bool running_ = false;
};

}  // namespace shardplan::validator
