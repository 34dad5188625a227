// What a block that is computed again makes for the next one.
#pragma once

#include <vector>

#include "program/compiled/units.h"

namespace shardplan::compiled {

/// Copies of a block's nodes that stand for the next block's: Inductor makes one kernel of two
/// blocks' that read the same tables, such as those that turn keys, where each block is no more
/// than 64 operations long (torch/_inductor/scheduler.py, are_long_distant_nodes) and what both
/// read otherwise is small (can_fusion_increase_peak_memory). What the next block's part needs is
/// made before it, and lives until that block.
struct MadeAhead {
  NodeId after = kNone;       ///< the block's own node that they follow; kNone: there are none
  std::vector<NodeId> nodes;  ///< each after what it reads
};

/// Appends the copies to `graph`. `pass`: of one block, `units` its kernels.
MadeAhead make_ahead(JointGraph& graph, const Pass& pass, const std::vector<Unit>& units);

}  // namespace shardplan::compiled
