// The built-in calibration: data/calibration.
#pragma once

#include <string>

#include "estimate/calibration.h"
#include "json/document.h"

namespace shardplan {

/// The constants of the one machine measured so far; they stand for every GPU, and carry its name.
Calibration load_calibration();

/// One from a file, as `shardplan calibrate` writes it. Throws InputError.
Calibration load_calibration(const std::string& path);

/// The built-in one's text, to build others on.
Json built_in_calibration();

/// The rates of the time model by name, as calibration files hold them.
Json time_json(const TimeRates& rates);

}  // namespace shardplan
