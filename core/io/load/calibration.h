// The built-in calibration: data/calibration.
#pragma once

#include "estimate/calibration.h"

namespace shardplan {

/// The constants of the one machine measured so far; they stand for every GPU, and carry its name.
Calibration load_calibration();

}  // namespace shardplan
