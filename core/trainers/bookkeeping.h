// What a trainer's own work between passes costs.
#pragma once

#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"
#include "trainers/description.h"

namespace shardplan {

/// Gives `plan` the loss that its workload asks for, as its trainer runs it, unless the job says
/// one.
inline void take_loss(Plan& plan, LossKind asked) {
  if (plan.loss != LossKind::cross_entropy) return;
  const bool chunks = asked == LossKind::distillation && plan.trainer->chunks_distillation;
  plan.loss = chunks ? LossKind::distillation_in_chunks : asked;
}

/// Behind each backward pass the host waits for the loss, if the plan's trainer reads it, and does
/// its accounts: what follows, clipping and the optimizer, starts from an idle GPU.
void add_trainer_work(Program& program, const Model& model, const Plan& plan);

}  // namespace shardplan
