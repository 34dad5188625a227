#include "program/compiled/partition.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "program/compiled/max_flow.h"

namespace shardplan::compiled {
namespace {

using Users = std::vector<std::vector<NodeId>>;

std::size_t at(NodeId id) {
  return static_cast<std::size_t>(id);
}

double bytes_of(const Node& node) {
  return static_cast<double>(node.elements) * static_cast<double>(size_of(node.type));
}

class Partitioner {
 public:
  Partitioner(const JointGraph& graph, NodeId first_backward, NodeId returned,
              const ChainInFront& chain)
      : graph_(graph),
        end_(first_backward),
        users_(at(graph.end())),
        distance_(at(graph.end()), 0),
        banned_(at(graph.end()), false) {
    for (NodeId id = 0; id < graph.end(); ++id)
      for (std::size_t k = 0; k < graph.at(id).inputs; ++k)
        users_[at(graph.at(id).in[k])].push_back(id);
    measure_distances();
    for (NodeId id = 0; id < end_; ++id) banned_[at(id)] = must_not_recompute(id);
    if (returned != kNone) banned_[at(returned)] = true;
    ban_uses_far_apart();
    if (chain.length > 0) ban_end_of(chain);
  }

  std::vector<bool> kept() const;
  /// From being computed again.
  bool is_banned(NodeId id) const { return banned_[at(id)]; }

 private:
  /// What the forward pass computes in any case.
  bool is_forward(NodeId id) const { return id < end_; }
  bool is_backward(NodeId id) const { return graph_.at(id).backward; }
  bool fuses(NodeId a, NodeId b) const {
    return graph_.at(a).part == graph_.at(b).part && traits_of(graph_.at(a).kind).fusible &&
           traits_of(graph_.at(b).kind).fusible;
  }
  void measure_distances();
  bool must_not_recompute(NodeId id) const;
  bool is_materialized(NodeId id) const {
    return graph_.at(id).kind == NodeKind::input ||
           std::any_of(users_[at(id)].begin(), users_[at(id)].end(),
                       [&](NodeId user) { return !fuses(id, user); });
  }
  double weight(NodeId id) const;
  NodeId first_unfusible(NodeId start, NodeId last) const;
  void ban_uses_far_apart();
  void ban_end_of(const ChainInFront& chain);

  const JointGraph& graph_;
  NodeId end_;  ///< of the forward pass
  Users users_;
  std::vector<double> distance_;  ///< operations between a node and the backward pass
  std::vector<bool> banned_;      ///< from being computed again
};

void Partitioner::measure_distances() {
  constexpr double kNever = 1e9;
  for (NodeId id = end_; id-- > 0;) {
    double least = kNever;
    for (const NodeId user : users_[at(id)])
      least = std::min(least, distance_[at(user)] + graph_.at(user).steps);
    distance_[at(id)] = least;
  }
}

/// Inputs; what is not in the list of cheap operations; what another graph reads; what the backward
/// pass needs as a whole tensor; reductions to less than a quarter.
bool Partitioner::must_not_recompute(NodeId id) const {
  const Node& node = graph_.at(id);
  if (!traits_of(node.kind).recomputable) return true;
  for (const NodeId user : users_[at(id)])
    if (graph_.at(user).part != node.part ||
        (!node.in_parts && !is_forward(user) && !fuses(id, user)))
      return true;
  double read = 0;
  for (std::size_t k = 0; k < node.inputs; ++k) read += bytes_of(graph_.at(node.in[k]));
  return bytes_of(node) * 4 < read;
}

/// The nearer to the backward pass, the better; twice where nothing else writes it.
double Partitioner::weight(NodeId id) const {
  if (graph_.at(id).resident) return 0;
  const double steps = distance_[at(id)] + (graph_.at(id).viewed ? 1 : 0);
  const double far = std::max(std::min(steps, 100.0), 1.0);
  return std::floor(bytes_of(graph_.at(id)) * std::pow(1.1, far)) * (is_materialized(id) ? 1 : 2);
}

/// The first operation from `start` on, along chains of what fuses, that does not.
NodeId Partitioner::first_unfusible(NodeId start, NodeId last) const {
  struct Step {
    NodeId id;
    bool fused;
    bool operator>(const Step& other) const { return id > other.id; }
  };
  std::priority_queue<Step, std::vector<Step>, std::greater<>> steps;
  std::vector<bool> seen(users_.size(), false);
  const auto visit = [&](NodeId from, bool first) {
    for (const NodeId user : users_[at(from)]) {
      if (!is_forward(user) || user > last || (seen[at(user)] && !first)) continue;
      seen[at(user)] = true;
      steps.push({user, first || fuses(from, user)});
    }
  };
  visit(start, true);
  while (!steps.empty()) {
    const Step step = steps.top();
    steps.pop();
    if (!step.fused) return step.id;
    visit(step.id, false);
  }
  return last;
}

/// A value that is used here and again behind a product: what uses it there is not computed again.
void Partitioner::ban_uses_far_apart() {
  for (NodeId id = 0; id < end_; ++id) {
    if (graph_.at(id).used_before) {
      for (const NodeId user : users_[at(id)])
        if (is_forward(user) && traits_of(graph_.at(user).kind).fusible) banned_[at(user)] = true;
      continue;
    }
    NodeId last = kNone;
    for (const NodeId user : users_[at(id)])
      if (is_forward(user)) last = std::max(last, user);
    if (last == kNone) continue;
    const NodeId border = first_unfusible(id, last);
    for (const NodeId user : users_[at(id)])
      if (is_forward(user) && user > border && fuses(id, user)) banned_[at(user)] = true;
  }
}

/// The first node more than a hundred behind the chain's start where nothing that fuses runs beside
/// it (ban_if_long_fusible_chains). A chain that is longer in front has ended there.
void Partitioner::ban_end_of(const ChainInFront& chain) {
  constexpr std::int64_t kLongest = 100;
  if (chain.length > kLongest) return;
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> fusible;
  std::vector<bool> visited(users_.size(), false);
  for (NodeId id = 0; id < end_; ++id)
    if (graph_.at(id).kind == NodeKind::chained) fusible.push(id);
  while (!fusible.empty()) {
    const NodeId id = fusible.top();
    fusible.pop();
    if (visited[at(id)]) continue;
    visited[at(id)] = true;
    if (at(id) >= chain.order.size()) return;
    if (chain.length + chain.order[at(id)] > kLongest && fusible.empty()) {
      banned_[at(id)] = true;
      return;
    }
    for (const NodeId user : users_[at(id)])
      if (is_forward(user) && fuses(id, user) && !banned_[at(user)]) fusible.push(user);
  }
}

std::vector<bool> Partitioner::kept() const {
  const std::int32_t source = 2 * graph_.end(), sink = source + 1;
  FlowNetwork network(sink + 1);
  network.reserve(4 * at(graph_.end()));
  constexpr double kUnbounded = FlowNetwork::kUnbounded;
  for (NodeId id = 0; id < graph_.end(); ++id) {
    if (is_backward(id)) continue;
    const std::int32_t in = 2 * id, out = in + 1;
    network.connect(in, out, weight(id));
    if (banned_[at(id)]) network.connect(source, in, kUnbounded);
    bool backward = false;
    for (const NodeId user : users_[at(id)]) {
      if (!is_backward(user)) network.connect(out, 2 * user, kUnbounded);
      backward = backward || is_backward(user);
    }
    if (backward) network.connect(out, sink, kUnbounded);
  }
  const std::vector<bool> side = network.source_side(source, sink);
  std::vector<bool> kept(at(graph_.end()), false);
  for (NodeId id = 0; id < graph_.end(); ++id)
    kept[at(id)] = !is_backward(id) && side[at(2 * id)] && !side[at(2 * id + 1)];
  return kept;
}

}  // namespace

/// From what the backward pass reads back to the first results that are there: the others are of no
/// use to it. What has no tag is kept where it may not be computed again; elsewhere the cut is at
/// what the block is given, which is there for others anyway.
std::vector<bool> kept_under_tags(const JointGraph& graph, NodeId first_backward,
                                  const std::vector<bool>& tags) {
  std::vector<bool> kept(graph.nodes.size(), false), seen(graph.nodes.size(), false);
  std::vector<NodeId> open;
  const Partitioner partitioner(graph, first_backward, kNone, {});
  for (NodeId id = first_backward; id < graph.end(); ++id)
    if (graph.at(id).backward) open.push_back(id);
  while (!open.empty()) {
    const Node& reader = graph.at(open.back());
    open.pop_back();
    for (std::size_t k = 0; k < reader.inputs; ++k) {
      const NodeId id = reader.in[k];
      const Node& node = graph.at(id);
      if (node.backward || seen[at(id)]) continue;
      seen[at(id)] = true;
      kept[at(id)] = node.kind == NodeKind::input || node.kind == NodeKind::chained ||
                     (node.untagged && id < first_backward && partitioner.is_banned(id)) ||
                     (traits_of(node.kind).call && id < first_backward &&
                      tags[static_cast<std::size_t>(node.op)]);
      if (!kept[at(id)]) open.push_back(id);
    }
  }
  return kept;
}

std::vector<bool> kept_nodes(const JointGraph& graph, NodeId first_backward, NodeId returned,
                             const ChainInFront& chain) {
  return Partitioner(graph, first_backward, returned, chain).kept();
}

void keep_read_by_linears(const JointGraph& joint, const Graph& graph, std::vector<bool>& kept) {
  for (const Node& made : joint.nodes) {
    if (made.kind != NodeKind::product || made.backward || made.op == kNone) continue;
    if (graph.ops()[static_cast<std::size_t>(made.op)].kind == OpKind::linear)
      kept[static_cast<std::size_t>(made.in[0])] = true;
  }
}

}  // namespace shardplan::compiled
