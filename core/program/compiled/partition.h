// What a compiled step keeps between its passes.
#pragma once

#include <vector>

#include "program/compiled/nodes.h"

namespace shardplan::compiled {

/// By node: whether its result is kept from the forward pass to the backward pass. The smallest cut
/// that AOTAutograd's partitioner makes through its joint graph, with the rules for what may be
/// computed again (PyTorch 2.11, torch/_functorch/partitioners.py, solve_min_cut). Nodes from
/// `first_backward` on are those of the backward pass. A segment is cut on its own; its chained
/// input is kept if that is cheapest.
/// What the model returns, `returned`, is not computed again.
std::vector<bool> kept_nodes(const JointGraph& graph, NodeId first_backward, NodeId returned);

}  // namespace shardplan::compiled
