// Which degrees a model, a cluster and a framework allow.
#pragma once

#include <optional>

#include "parallel/problem.h"

namespace shardplan {

/// The first thing that is wrong with plan.parallel; nothing when it can be run and estimated.
std::optional<DivisionProblem> degree_problem(const Model& model, const Plan& plan);

/// Micro-batches that an interleaved schedule takes through one chunk before the next: as many as
/// stages; PyTorch's takes all of a round, which may be more or fewer (ScheduleInterleaved1F1B).
std::int64_t interleaved_group(const Plan& plan);

/// The blocks that pipeline stages share out.
std::int64_t block_count(const Model& model);
/// The experts of a sparse layer; 0 in a dense model.
std::int64_t expert_count(const Model& model);

}  // namespace shardplan
