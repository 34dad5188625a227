// What a trainer's own work between passes costs.
#pragma once

#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

/// Behind each backward pass the host waits for the loss, if the plan's trainer reads it, and does
/// its accounts: what follows, clipping and the optimizer, starts from an idle GPU.
void add_trainer_work(Program& program, const Model& model, const Plan& plan);

}  // namespace shardplan
