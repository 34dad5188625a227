// What an engine chooses by the GPU where nobody says it: sequences at once, tokens of a pass, its
// share of the memory.
#pragma once

#include "hardware/cluster.h"
#include "rollout/engine.h"

namespace shardplan {

/// Fills in what is 0 of `engine`, whose length is known: sequences, tokens of a pass, the share.
void choose_sizes(RolloutEngine& engine, const Gpu& gpu, EngineCaller caller);

}  // namespace shardplan
