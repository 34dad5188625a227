// A pipeline stage under FSDP2 (torch.distributed.pipelining).
#pragma once

#include "lowering/segments.h"
#include "program/program.h"

namespace shardplan {

/// The step of `rank`, one of a stage's.
Program lower_fsdp2_stage(const Model& whole, const Plan& plan, const ModelRun& run,
                          std::int64_t rank);

}  // namespace shardplan
