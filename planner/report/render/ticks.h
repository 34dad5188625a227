// Round numbers for an axis that begins at zero.
#pragma once

#include <functional>
#include <string>

#include "report/quantity.h"

namespace shardplan::report {

/// Calls `draw` for 0 and three to six round steps up to `most`, each with its number and unit.
/// Bytes are counted in powers of 1,024, other units in powers of ten.
void for_each_tick(double most, Unit unit,
                   const std::function<void(double at, const std::string& label)>& draw);

}  // namespace shardplan::report
