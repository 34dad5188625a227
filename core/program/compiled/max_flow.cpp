#include "program/compiled/max_flow.h"

#include <algorithm>

namespace shardplan::compiled {

void FlowNetwork::connect(std::int32_t from, std::int32_t to, double capacity) {
  const auto add = [&](std::int32_t a, std::int32_t b, double c) {
    edges_.push_back({b, first_[static_cast<std::size_t>(a)], c});
    first_[static_cast<std::size_t>(a)] = static_cast<std::int32_t>(edges_.size()) - 1;
  };
  add(from, to, capacity);
  add(to, from, 0);
}

/// Distances from the source along edges with capacity left; whether the sink has one.
bool FlowNetwork::find_levels(std::int32_t source, std::int32_t sink) {
  level_.assign(first_.size(), -1);
  level_[static_cast<std::size_t>(source)] = 0;
  std::vector<std::int32_t> queue{source};
  for (std::size_t at = 0; at < queue.size(); ++at) {
    const auto node = static_cast<std::size_t>(queue[at]);
    for (std::int32_t e = first_[node]; e >= 0; e = edges_[static_cast<std::size_t>(e)].next) {
      const Edge& edge = edges_[static_cast<std::size_t>(e)];
      std::int32_t& level = level_[static_cast<std::size_t>(edge.to)];
      if (edge.left <= 0 || level >= 0) continue;
      level = level_[node] + 1;
      queue.push_back(edge.to);
    }
  }
  return level_[static_cast<std::size_t>(sink)] >= 0;
}

double FlowNetwork::push(std::int32_t node, std::int32_t sink, double most) {
  if (node == sink) return most;
  const auto n = static_cast<std::size_t>(node);
  for (std::int32_t& e = next_[n]; e >= 0; e = edges_[static_cast<std::size_t>(e)].next) {
    Edge& edge = edges_[static_cast<std::size_t>(e)];
    if (edge.left <= 0 || level_[static_cast<std::size_t>(edge.to)] != level_[n] + 1) continue;
    const double flow = push(edge.to, sink, std::min(most, edge.left));
    if (flow <= 0) continue;
    if (edge.left < kUnbounded) edge.left -= flow;
    edges_[static_cast<std::size_t>(e ^ 1)].left += flow;
    return flow;
  }
  return 0;
}

std::vector<bool> FlowNetwork::source_side(std::int32_t source, std::int32_t sink) {
  while (find_levels(source, sink)) {
    next_ = first_;
    while (push(source, sink, kUnbounded) > 0) {
    }
  }
  // Backwards from the sink, along edges that have capacity left towards it.
  std::vector<bool> side(first_.size(), true);
  side[static_cast<std::size_t>(sink)] = false;
  std::vector<std::int32_t> queue{sink};
  for (std::size_t at = 0; at < queue.size(); ++at) {
    const auto node = static_cast<std::size_t>(queue[at]);
    for (std::int32_t e = first_[node]; e >= 0; e = edges_[static_cast<std::size_t>(e)].next) {
      const std::int32_t from = edges_[static_cast<std::size_t>(e)].to;
      if (edges_[static_cast<std::size_t>(e ^ 1)].left <= 0 ||
          !side[static_cast<std::size_t>(from)])
        continue;
      side[static_cast<std::size_t>(from)] = false;
      queue.push_back(from);
    }
  }
  return side;
}

}  // namespace shardplan::compiled
