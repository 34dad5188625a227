// The parts of an estimate that follow from a program alone.
#pragma once

#include <span>
#include <vector>

#include "estimate/estimate.h"
#include "simulator/reserved.h"

namespace shardplan {

/// Programs of one plan's ranks on the caching allocator, with as much room as the plan's GPU has
/// and with as much as the upper bounds ask about. `each`: runs them.
std::vector<ReservedRuns> allocator_runs(const Plan& plan, const Calibration& calibration,
                                         std::span<const Program* const> programs,
                                         const ForEach& each = in_turn);

/// Lets `runs` know of further steps of the plan, one after the other: which program each has.
void add_steps(ReservedRuns& runs, const Plan& plan, const Calibration& calibration,
               std::span<const Program* const> programs, std::span<const std::size_t> order);

/// All but what is about a model: parameters and tensors are left at 0. `runs`: the program's;
/// nullptr: reserved memory by ratio.
Estimate assemble(const Plan& plan, const Calibration& calibration, const Program& program,
                  const MemoryProfile& memory, const ReservedRuns* runs, const TimeEstimate& time);

}  // namespace shardplan
