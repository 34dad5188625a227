// What would change the verdict, with its price.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimate/estimate.h"
#include "questions/changes.h"

namespace shardplan {

/// One change or several together, and what the job would need then.
struct Fix {
  std::vector<Change> changes;
  Estimate after;
  std::int64_t gpu_saved = 0;  ///< device bytes: before minus after, point estimates
  double slowdown = 0;         ///< step time per sample after over before; 0: unknown
};

/// Changes that save at least 1 % of the GPU, each alone, best first: those that make the job fit,
/// by slowdown, then the rest by bytes saved. When none is enough alone, the cheapest combination
/// found greedily is put first. Deterministic.
std::vector<Fix> find_fixes(const Model& model, const Plan& plan, const Estimate& now,
                            const Calibration& calibration);

}  // namespace shardplan
