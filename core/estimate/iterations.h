// Iterations whose answers end by themselves: trainers fill their batches up to the longest answer,
// which is another one each time, and the allocator meets other sizes.
#pragma once

#include <optional>

#include "estimate/calibration.h"
#include "estimate/many_iterations.h"
#include "lowering/rlhf/roles.h"
#include "plan/plan.h"
#include "simulator/reserved.h"

namespace shardplan {

/// The job whose answers are as long as the engine lets them become. Nothing where all are alike,
/// and where batches are budgets of tokens, which a trainer fills anyway.
std::optional<Rlhf> with_longest_answers(const Rlhf& rlhf);

/// Runs a hundred iterations on the allocator, none of which gives segments back unless its trainer
/// does. Nothing where they are alike. `runs`: those of `longest`, the program with the longest
/// ones, which learn of them. `plan`: of an iteration.
std::optional<ManyIterations> add_iterations(ReservedRuns& runs, const Program& longest,
                                             const Rlhf& rlhf, const Plan& plan,
                                             const Calibration& calibration);

}  // namespace shardplan
