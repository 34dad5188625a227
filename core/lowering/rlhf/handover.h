// A rollout engine beside the trainer: how it wakes, takes the trainer's weights, and sleeps.
#pragma once

#include "lowering/rlhf/roles.h"
#include "program/program.h"

namespace shardplan {

/// The engine's turn: it wakes for the weights, then for its cache, and sleeps again. `training`:
/// the actor's step, whose states are there.
Program lower_rollout(const Rlhf& rlhf, const Program& training);

/// What an engine on the same GPU holds while others work.
void add_engine(Program& whole, const Rlhf& rlhf);

/// The processes that are on the GPU beside the actor's, by how the trainer starts them.
void add_processes(Program& whole, const Rlhf& rlhf);

}  // namespace shardplan
