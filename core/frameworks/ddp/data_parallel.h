// Training with whole states on every GPU.
#pragma once

#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

struct ModelRun;

/// The step of plain PyTorch; with `ddp`, of DistributedDataParallel.
Program lower_data_parallel(const Model& model, const Plan& plan, const ModelRun& run,
                            const DdpOptions* ddp);

}  // namespace shardplan
