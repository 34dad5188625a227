// Training with whole states on every GPU.
#pragma once

#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

struct ModelRun;

/// Whether DDP looks for parameters without a gradient: as the job says, or as its trainer asks.
bool finds_unused_parameters(const Plan& plan);

/// The step of plain PyTorch; with `ddp`, of DistributedDataParallel.
Program lower_data_parallel(const Model& model, const Plan& plan, const ModelRun& run,
                            const DdpOptions* ddp);

}  // namespace shardplan
