// The parts of an estimate that follow from a program alone.
#pragma once

#include "estimate/estimate.h"

namespace shardplan {

/// All but what is about a model: parameters and tensors are left at 0.
Estimate assemble(const Plan& plan, const Calibration& calibration, const Program& program,
                  const MemoryProfile& memory, ReservedMemory reserved, const TimeEstimate& time);

}  // namespace shardplan
