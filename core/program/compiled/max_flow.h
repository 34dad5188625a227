// The smallest cut between two nodes of a network (Dinic's algorithm).
#pragma once

#include <cstdint>
#include <vector>

namespace shardplan::compiled {

class FlowNetwork {
 public:
  static constexpr double kUnbounded = 1e300;

  explicit FlowNetwork(std::int32_t nodes) : first_(static_cast<std::size_t>(nodes), -1) {}
  void reserve(std::size_t edges) { edges_.reserve(2 * edges); }

  void connect(std::int32_t from, std::int32_t to, double capacity);

  /// By node: whether it is on the source's side of a smallest cut, the one nearest to the sink.
  std::vector<bool> source_side(std::int32_t source, std::int32_t sink);

 private:
  struct Edge {
    std::int32_t to = 0, next = -1;
    double left = 0;
  };
  bool find_levels(std::int32_t source, std::int32_t sink);
  double push(std::int32_t node, std::int32_t sink, double most);

  std::vector<std::int32_t> first_;
  std::vector<Edge> edges_;  ///< an edge and its reverse are neighbours
  std::vector<std::int32_t> level_, next_;
};

}  // namespace shardplan::compiled
