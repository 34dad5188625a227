#include "program/compiled/inlined.h"

#include <cstdint>
#include <set>
#include <utility>

namespace shardplan::compiled {
namespace {

constexpr std::int64_t kMostInlined = 30;

/// Of one node: each different operation that leads to it counts once (OpCounterCSE), be it in two
/// places.
class OperationCounter {
 public:
  OperationCounter(const JointGraph& graph, const std::vector<bool>& inlined)
      : graph_(graph), inlined_(inlined) {}

  /// Is false where an operation is not counted.
  bool count(NodeId id) {
    const Node& node = graph_.at(id);
    if (node.operations == 0) return false;
    if (!add_own(id)) return true;
    for (std::size_t k = 0; k < node.inputs; ++k) {
      const NodeId in = node.in[k];
      if (!inlined_[static_cast<std::size_t>(in)])
        add(in, graph_.at(in).type, 1);
      else if (!count(in))
        return false;
      // Of two types the narrower is cast.
      if (node.inputs > 1 && size_of(graph_.at(in).type) < size_of(node.type))
        add(in, node.type, 1);
    }
    return true;
  }
  std::int64_t operations() const { return operations_; }

 private:
  /// A cast is the same as one that a wider operation makes of what it reads.
  bool add_own(NodeId id) {
    const Node& node = graph_.at(id);
    const bool cast = node.inputs == 1 && graph_.at(node.in[0]).type != node.type;
    return add(cast ? node.in[0] : id, node.type, node.operations);
  }
  /// Whether it is new.
  bool add(NodeId id, DType type, std::int64_t operations) {
    if (!counted_.emplace(id, type).second) return false;
    operations_ += operations;
    return true;
  }

  const JointGraph& graph_;
  const std::vector<bool>& inlined_;
  std::set<std::pair<NodeId, DType>> counted_;
  std::int64_t operations_ = 0;
};

}  // namespace

std::vector<bool> too_long_to_inline(const JointGraph& graph, const std::vector<NodeId>& order,
                                     const std::vector<bool>& stored) {
  std::vector<bool> inlined(graph.nodes.size(), false), long_ones(graph.nodes.size(), false);
  for (const NodeId id : order) {
    const auto at = static_cast<std::size_t>(id);
    if (stored[at]) continue;
    OperationCounter counter(graph, inlined);
    long_ones[at] = counter.count(id) && counter.operations() > kMostInlined;
    inlined[at] = !long_ones[at];
  }
  return long_ones;
}

}  // namespace shardplan::compiled
