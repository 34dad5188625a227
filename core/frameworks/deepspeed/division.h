// How DeepSpeed divides states and stages over GPUs: its groups, and what it refuses.
#pragma once

#include <optional>
#include <vector>

#include "frameworks/traits.h"
#include "parallel/problem.h"

namespace shardplan {

/// Pipelines, and MiCS, ZeRO++ and experts: what is wrong with them; nothing when all of it can be
/// run and estimated.
std::optional<DivisionProblem> deepspeed_pipeline_problem(const Plan& plan);
std::optional<DivisionProblem> deepspeed_sharding_problem(const Model& model, const Plan& plan);

/// The ranks of a shard group: those of one copy of the states under MiCS, or hpZ's
/// (utils/groups.py _create_zero_param_parallel_group). 0: there is no such group.
std::int64_t deepspeed_shard_group(const Plan& plan);

/// Of quantized gradients (coalesced_collectives.py all_to_all_quant_reduce) and of MiCS's
/// hierarchical gathers.
HopRanks deepspeed_hops(const Plan& plan);

/// AutoTP sends the first batch to the ranks of a tensor-parallel group as pickled tensors, which
/// each of them unpickles on the GPU they come from (engine.py broadcast_and_check).
std::int64_t deepspeed_foreign_contexts(const Plan& plan);

}  // namespace shardplan
