// What one measured step of a job says of the machine that took it (`shardplan anchor`,
// docs/explanation/time.md, "One measured step").
#pragma once

#include <string>

#include "timing/part_factors.h"

namespace shardplan {

struct Anchor {
  std::string run;              ///< where the measured step was read from
  std::string gpu;              ///< that it ran on, by its catalogue name
  std::string calibration;      ///< that `factors` correct, by its name
  double measured_seconds = 0;  ///< of a step
  double predicted_seconds = 0;
  PartFactors factors = kAsFitted;
  /// Measured over predicted bytes, at least 1. Upper bounds of memory are no lower than this many
  /// times what is estimated; estimates stay as they are.
  double memory_over = 1;
};

/// What a machine takes: "1.18 times as long for kernels, 1.02 times for the host".
std::string describe(const PartFactors& factors);

}  // namespace shardplan
