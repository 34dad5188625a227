// What an answer rests on: warnings, assumptions and the standing of each kind of number.
#pragma once

#include <string>

#include "estimate/estimate.h"
#include "load/job.h"

namespace shardplan {

std::string foundation(const Estimate& e, const Job& job, const Calibration& calibration);

}  // namespace shardplan
