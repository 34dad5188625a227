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

/// What fuses in front of a segment, up to its chained input, where that is all computed again.
struct ChainInFront {
  std::int64_t length = 0;          ///< in nodes of AOTAutograd's graph; 0: there is none
  std::vector<std::int64_t> order;  ///< of the segment's own nodes (aten_order.h), as far as known
};

/// `chain`: a long one ends in the segment, at a node that is not computed again.
std::vector<bool> kept_nodes(const JointGraph& graph, NodeId first_backward, NodeId returned,
                             const ChainInFront& chain = {});

/// Stage 3's linear is a function of autograd's, which keeps what it reads whatever trains.
void keep_read_by_linears(const JointGraph& joint, const Graph& graph, std::vector<bool>& kept);

}  // namespace shardplan::compiled
