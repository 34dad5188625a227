// The answer of `shardplan fit`: a page that a busy person can read.
#pragma once

#include <string>
#include <vector>

#include "load/job.h"
#include "questions/cost.h"
#include "questions/fixes.h"

namespace shardplan {

std::string fit_text(const Estimate& e, const Job& job, const std::vector<Fix>& fixes,
                     const Calibration& calibration, const Cost& cost);

}  // namespace shardplan
