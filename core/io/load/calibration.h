// The built-in calibration: data/calibration.
#pragma once

#include "estimate/calibration.h"

namespace shardplan {

/// The constants for GPUs of `arch`; those of the only calibrated machine when there are none.
Calibration load_calibration(std::string_view arch);

}  // namespace shardplan
