// What a job that fits could have for the memory that it leaves: more tokens per second.
#pragma once

#include <vector>

#include "questions/fixes.h"

namespace shardplan {

/// Changes of a job that fits, each alone, with which it still fits and every token takes less time
/// (Fix::slowdown, at most kLeastGain): larger micro-batches and batches, less recomputed, less of
/// it off the GPU or divided, fused kernels, torch.compile. Of each kind the best one; the fastest
/// first, `effort.most` of them. Empty for a job that does not fit, for several models, for rates
/// that are not known, and when it was asked to stop. Deterministic.
std::vector<Fix> find_improvements(const Job& job, const WrittenJob& written, const Estimate& now,
                                   const Calibration& calibration, const Effort& effort = {});

/// Time for each token after over before, at most: less than that is within what estimates of time
/// are off by, and worth nobody's change.
inline constexpr double kLeastGain = 0.95;

}  // namespace shardplan
