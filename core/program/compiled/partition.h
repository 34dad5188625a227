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
/// `tags`, by operation: results that selective checkpointing keeps; all else of the forward pass
/// is computed again, but for what has no tag. Empty: the segment is not checkpointed.
std::vector<bool> kept_under_tags(const JointGraph& graph, NodeId first_backward,
                                  const std::vector<bool>& tags);

std::vector<bool> kept_nodes(const JointGraph& graph, NodeId first_backward, NodeId returned);

/// Stage 3's linear is a function of autograd's, which keeps what it reads whatever trains.
void keep_read_by_linears(const JointGraph& joint, const Graph& graph, std::vector<bool>& kept);

}  // namespace shardplan::compiled
