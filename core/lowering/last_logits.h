// Logits that a trainer's loop has a name for longer than its step needs them.
#pragma once

#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

/// Where the plan's trainer keeps them (TrainerDescription::keeps_last_logits): those of a
/// micro-batch go when the model has returned the next ones.
void hold_last_logits(Program& program, const Model& model, const Plan& plan);

}  // namespace shardplan
