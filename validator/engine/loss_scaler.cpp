#include "engine/loss_scaler.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/diverged.h"

namespace shardplan::validator {

void LossScaler::update(bool overflow) {
  if (!options_.dynamic) {
    if (overflow)
      throw Diverged(fmt::format("gradients overflow at the fixed loss scale {}", scale_));
    return;
  }
  if (overflow) {
    if (patience_ > 1) {
      --patience_;
    } else {
      if (scale_ <= options_.smallest)
        throw Diverged(
            fmt::format("gradients overflow at the smallest loss scale, {}", options_.smallest));
      scale_ = std::max(scale_ / options_.factor, options_.smallest);
    }
    last_overflow_ = step_;
  } else {
    const std::int64_t calm = step_ - last_overflow_ - 1;
    if (calm > 0 && calm % options_.window == 0) {
      patience_ = options_.hysteresis;
      scale_ *= options_.factor;
    }
  }
  ++step_;
}

}  // namespace shardplan::validator
