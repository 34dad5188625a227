// Model × Plan to the step program of one rank, by the framework that the plan names.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/segments.h"
#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

/// The ranks whose programs differ enough that one of them may be the worst. Rank 0 comes first.
std::vector<std::int64_t> distinct_ranks(const Model& model, const Plan& plan);

/// The program of `rank`. `run` are the model's tapes under this plan (run_segments), which are the
/// same on every rank; the program begins with their tables (program_of). Throws InputError for a
/// model that the framework does not run.
Program lower(const Model& model, const Plan& plan, const ModelRun& run, std::int64_t rank);

}  // namespace shardplan
