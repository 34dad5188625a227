// How checkpointed blocks keep their inputs under DeepSpeed.
#pragma once

#include <optional>

#include "lowering/segments.h"
#include "parallel/problem.h"
#include "program/tape.h"

namespace shardplan {

SavedInput deepspeed_saved_input(const Plan& plan);

/// What DeepSpeed's function holds on a GPU beside the inputs of the blocks that have run: tensors
/// of contiguous_memory_optimization that no block fills, or the two inputs that have not left for
/// the host.
std::int64_t deepspeed_held_inputs(const Plan& plan, const ModelRun& run);

/// The inputs that wait on the host for the backward pass.
HostMemory deepspeed_inputs_on_host(const Plan& plan, const ModelRun& run);

/// Policies with numbers where DeepSpeed has a hand in them.
std::optional<DivisionProblem> deepspeed_checkpoint_problem(const Plan& plan);

}  // namespace shardplan
