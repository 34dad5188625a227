// What decides a tight verdict, and what a user can do about it.
#pragma once

#include <string>

#include "estimate/estimate.h"

namespace shardplan {

/// Nothing where the GPU's verdict is another.
std::string tight_text(const Estimate& e);

}  // namespace shardplan
