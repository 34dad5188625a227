// Sequences divided over ranks: everything but attention sees a rank's tokens only.
#pragma once

#include "parallel/shard.h"

namespace shardplan {

/// Divides sequences over plan.parallel.sequence ranks (Ulysses: for attention, each rank has all
/// tokens of some heads) and plan.parallel.context ranks (ring attention: each rank keeps its
/// queries while keys and values go round). Extents count a rank's tokens (sizes_of).
void split_sequences(Model& model, const Plan& plan);

}  // namespace shardplan
