// The answer of `shardplan compare`.
#pragma once

#include <string>
#include <vector>

#include "questions/compare.h"

namespace shardplan {

std::string compare_text(const std::vector<Alternative>& alternatives);

}  // namespace shardplan
