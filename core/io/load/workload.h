// The `workload` of a job of one model: training with its adapters, or generation.
#pragma once

#include <string>

#include "json/reader.h"
#include "plan/plan.h"

namespace shardplan {

/// Batch, sequence and accumulation are 0 where the job leaves them open. Relative paths in it
/// start at `directory`.
Workload read_workload(ObjectReader& job, const std::string& directory);

}  // namespace shardplan
