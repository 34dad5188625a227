// What the kernels of a compiled pass compute and move.
#pragma once

#include "program/compiled/units.h"
#include "program/tape/graph_view.h"
#include "program/tape/kernel_list.h"

namespace shardplan::compiled {

/// The kernels of one unit; nothing for further results of a call. `masked`: causal attention reads
/// a mask.
tape::KernelList kernels_of(const JointGraph& graph, const Unit& unit, const tape::GraphView& view,
                            bool masked);

}  // namespace shardplan::compiled
