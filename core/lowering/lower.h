// Model × Plan to the step program of one rank. One file (or folder) a framework.
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

// The frameworks, called by lower().
Program lower_data_parallel(const Model& model, const Plan& plan, const ModelRun& run);
Program lower_fsdp2(const Model& model, const Plan& plan, const ModelRun& run);
Program lower_deepspeed(const Model& model, const Plan& plan, const ModelRun& run,
                        std::int64_t rank);
Program lower_megatron(const Model& model, const Plan& plan, const ModelRun& run,
                       std::int64_t rank);
/// Ranks of one ZeRO partition group that may differ.
std::vector<std::int64_t> distinct_partitions(const Model& model, const Plan& plan);
Program lower_native(const Model& model, const Plan& plan, const ModelRun& run);

}  // namespace shardplan
