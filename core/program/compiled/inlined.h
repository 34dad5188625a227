// What Inductor computes inside of the kernels that read it, and how long that may get.
#pragma once

#include <vector>

#include "program/compiled/nodes.h"

namespace shardplan::compiled {

/// By node: whether it has a buffer because more than thirty operations lead to it from what is in
/// memory (PyTorch 2.11, torch/_inductor/ir.py, has_exceeded_max_reads: realize_opcount_threshold;
/// the result may still stay inside of one kernel). Operations are counted where a network writes
/// an activation out; what else leads to a node is not counted, and the node has none then.
/// `order`: the nodes of a pass, each after what it reads; `stored`: those in memory anyway.
std::vector<bool> too_long_to_inline(const JointGraph& graph, const std::vector<NodeId>& order,
                                     const std::vector<bool>& stored);

}  // namespace shardplan::compiled
