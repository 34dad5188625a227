// Ranks of one plan: the one that an estimate is about, and those that may need more than others.
#pragma once

#include <vector>

#include "estimate/estimate.h"

namespace shardplan {

/// The estimate of every rank that may be the worst, rank 0 first; the others need no more than
/// these.
std::vector<Estimate> estimate_ranks(const Model& model, const Plan& plan,
                                     const Calibration& calibration);

/// The same, with passes that other plans may share.
std::vector<Estimate> estimate_ranks(const Model& model, const Plan& plan, const Passes& passes,
                                     const Calibration& calibration, ReservedMemory reserved);

/// The step program that an estimate of `plan` is about: the worst rank's.
Program worst_program(const Model& model, const Plan& plan);

}  // namespace shardplan
