// How the blocks of a plan are checkpointed, and where their inputs are kept.
#pragma once

#include <cstdint>

#include "lowering/segments.h"
#include "plan/plan.h"
#include "program/tape.h"

namespace shardplan {

SavedInput saved_input_of(const Plan& plan);

/// What DeepSpeed's function holds on a GPU beside the inputs of the blocks that have run: tensors
/// of contiguous_memory_optimization that no block fills, or the two inputs that have not left for
/// the host.
std::int64_t held_inputs(const Plan& plan, const ModelRun& run);

/// Adds the inputs that wait on the host for the backward pass.
void add_inputs_on_host(HostMemory& host, const Plan& plan, const ModelRun& run);

}  // namespace shardplan
