// One rank's share of a network that tensor, sequence, context and expert parallelism divide.
//
// The share is a network again: parameters have this rank's shapes, values its extents, and what
// ranks exchange are operations (OpKind::communicate) at the places where the framework puts them.
// So whatever lowers a network lowers a rank's share of one. docs/explanation/parallelism.md
// derives the terms.
#pragma once

#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// The rank that has the most, under plan.parallel; pipeline stages are left to the caller. Throws
/// InputError for a network that the framework cannot cut so.
Model shard(const Model& whole, const Plan& plan);

/// Whether shard() would change anything.
bool is_sharded(const Plan& plan);

}  // namespace shardplan
