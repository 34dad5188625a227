// The kernels that Inductor makes of a pass: calls of libraries, and what is fused between them.
#pragma once

#include <algorithm>
#include <vector>

#include "program/compiled/nodes.h"

namespace shardplan::compiled {

inline bool contains(const std::vector<NodeId>& list, NodeId id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

/// What Inductor's scheduler has a node for, and what that reads from memory or from others.
struct Made {
  NodeId id = kNone;
  std::vector<NodeId> reads;
};

/// One kernel: what it reads from memory and what it leaves there.
struct Unit {
  std::vector<Made> nodes;  ///< also those whose results stay inside of it
  std::vector<NodeId> reads, writes;
  bool call = false;  ///< of a library
  bool reduces = false;
  std::int32_t part = 0;  ///< of the graphs (Node::part)
  std::int64_t span = 0;  ///< elements that it goes over
  std::int64_t workspace = 0;
};

/// Whether a node of a unit may write over what it reads: no other one reads that afterwards, which
/// are those that it does not wait for (torch/_inductor/scheduler.py, decide_inplace_update).
bool may_write_over(const Unit& unit, const Made& made, NodeId read);

/// A pass: `order` are the nodes that it computes, each after what it reads; `there` by node says
/// which tensors exist before it, `wanted` which are to exist behind it.
struct Pass {
  std::vector<NodeId> order;
  std::vector<bool> there, wanted;
  bool together = false;  ///< all results of a call of attention are there at once
  /// What a kernel is fused with may come late, behind what would read it before. So it is in
  /// graphs of blocks that are computed again one behind the other; of others it is not known.
  bool postpones = false;
};

/// What has to be computed for what is wanted and not there, in order.
std::vector<NodeId> order_of(const JointGraph& graph, const Pass& pass);

/// Values of pointwise nodes are computed inside of the kernels that read them, unless a call reads
/// them or they are wanted (torch/_inductor/ir.py, Pointwise and StorageBox). What goes over
/// as many elements and has something in common is one kernel (torch/_inductor/scheduler.py). So is
/// what is scattered with what makes it: the tensor of zeros that it is added to is there before.
std::vector<Unit> units_of(const JointGraph& graph, const Pass& pass);

/// Bytes: the most that is there beyond what the pass begins with, where each tensor goes when the
/// last unit that uses it has run. `last`: by node, that unit; `stored`: by node, it has a storage.
std::int64_t working_set(const JointGraph& graph, const Pass& pass, const std::vector<Unit>& units,
                         const std::vector<std::size_t>& last, std::vector<bool> stored);

}  // namespace shardplan::compiled
