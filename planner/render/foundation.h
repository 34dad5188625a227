// What an answer rests on: warnings, assumptions and the standing of each kind of number.
#pragma once

#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "load/job.h"

namespace shardplan {

struct Statement {
  std::string standing;  ///< "warning", "assumed", "exact", ...
  std::string words;
};

std::vector<Statement> statements(const Estimate& e, const Job& job,
                                  const Calibration& calibration);

/// The same as indented lines.
std::string foundation(const Estimate& e, const Job& job, const Calibration& calibration);

}  // namespace shardplan
