// The answer of `shardplan compare`.
#pragma once

#include <string>
#include <vector>

#include "load/job.h"
#include "questions/compare.h"

namespace shardplan {

std::string compare_text(const Job& job, const std::vector<Alternative>& alternatives);

}  // namespace shardplan
