#include "program/compiled/made_ahead.h"

#include <algorithm>
#include <map>
#include <utility>

namespace shardplan::compiled {
namespace {

constexpr std::int64_t kFarthest = 64;     // operations between two that become one kernel
constexpr std::int64_t kWorthOfByte = 32;  // elements that may live longer for a byte read once

/// Operations as Inductor's scheduler has them. A call of attention has one more for each result;
/// beside those that are counted as nodes it returns the state of its random numbers, two numbers,
/// in the forward pass. Sums of columns are taken in two steps.
std::int64_t operations_of(const JointGraph& graph, const std::vector<Unit>& units) {
  constexpr std::int64_t kForward = 3, kBackward = 1;
  std::int64_t operations = 0;
  for (const Unit& unit : units) {
    operations += static_cast<std::int64_t>(unit.nodes.size());
    for (const Made& made : unit.nodes)
      if (graph.at(made.id).across || graph.at(made.id).alone) ++operations;
    const Node& made = graph.at(unit.writes.front());
    if (made.kind == NodeKind::attention) operations += made.backward ? kBackward : kForward;
  }
  return operations;
}

class Copier {
 public:
  Copier(JointGraph& graph, const Pass& pass) : graph_(graph), pass_(pass) {}

  /// Whether two blocks' become one kernel: it reads a table that all blocks do, and nothing that
  /// is its own but a small product.
  bool joins(const Made& made) const;
  NodeId copy(NodeId id);
  std::vector<NodeId> take() { return std::move(made_); }

 private:
  bool is_table(NodeId id) const {
    const Node& node = graph_.at(id);
    return node.kind == NodeKind::input && node.used_before && !node.resident;
  }

  /// A product of what is the block's own by a parameter.
  bool is_of_weight(const Node& node) const {
    return node.kind == NodeKind::product && node.inputs > 1 && graph_.at(node.in[1]).resident;
  }

  JointGraph& graph_;
  const Pass& pass_;
  std::map<NodeId, NodeId> copies_;
  std::vector<NodeId> made_;
};

/// Keys are repeated to all heads: what turns as many as it reads is one kernel with the turning
/// back of the block before, behind its attention, and nothing waits for long. Tables of turning
/// are made of one of angles in fp32, of half as many elements, which each kernel reads at two
/// places.
bool Copier::joins(const Made& made) const {
  const Node& node = graph_.at(made.id);
  if (node.backward || node.kind != NodeKind::pointwise) return false;
  std::int64_t table = 0, own = 0;
  for (const NodeId read : made.reads) {
    if (is_table(read))
      table = graph_.at(read).elements * size_of(DType::f32);
    else if (is_of_weight(graph_.at(read)))
      own += graph_.at(read).elements;
    else
      return false;
  }
  return table > 0 && own > 0 && own < node.elements && own <= kWorthOfByte * table;
}

NodeId Copier::copy(NodeId id) {
  const NodeKind kind = graph_.at(id).kind;
  if (pass_.there[static_cast<std::size_t>(id)] || kind == NodeKind::input) return id;
  if (const auto known = copies_.find(id); known != copies_.end()) return known->second;
  Node node = graph_.at(id);
  for (std::size_t k = 0; k < node.inputs; ++k) node.in[k] = copy(node.in[k]);
  node.alone = node.ahead = true;
  graph_.nodes.push_back(node);
  made_.push_back(graph_.end() - 1);
  return copies_[id] = made_.back();
}

}  // namespace

MadeAhead make_ahead(JointGraph& graph, const Pass& pass, const std::vector<Unit>& units) {
  MadeAhead ahead;
  if (operations_of(graph, units) > kFarthest) return ahead;
  Copier copier(graph, pass);
  for (const Unit& unit : units) {
    if (unit.call) continue;
    for (const Made& made : unit.nodes) {
      if (!copier.joins(made)) continue;
      graph.at(copier.copy(made.id)).realized = true;
      ahead.after = std::max(ahead.after, made.id);
    }
  }
  ahead.nodes = copier.take();
  return ahead;
}

}  // namespace shardplan::compiled
