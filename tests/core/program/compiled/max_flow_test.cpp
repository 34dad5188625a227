#include "program/compiled/max_flow.h"

#include <gtest/gtest.h>

namespace shardplan::compiled {
namespace {

/// The capacity of the edges that a cut goes through.
struct Edge {
  std::int32_t from, to;
  double capacity;
};

double cut_of(std::int32_t nodes, const std::vector<Edge>& edges,
              std::vector<bool>* side = nullptr) {
  FlowNetwork network(nodes);
  for (const Edge& e : edges) network.connect(e.from, e.to, e.capacity);
  const std::vector<bool> near_source = network.source_side(0, nodes - 1);
  if (side != nullptr) *side = near_source;
  double cut = 0;
  for (const Edge& e : edges)
    if (near_source[static_cast<std::size_t>(e.from)] &&
        !near_source[static_cast<std::size_t>(e.to)])
      cut += e.capacity;
  return cut;
}

TEST(FlowNetwork, CutsTheNarrowestPlace) {
  EXPECT_EQ(cut_of(4, {{0, 1, 9}, {1, 2, 2}, {2, 3, 5}}), 2);
}

TEST(FlowNetwork, AddsUpWhatGoesAround) {
  // Two ways of 3 and 4, and a bridge between them that carries nothing more.
  EXPECT_EQ(cut_of(4, {{0, 1, 3}, {0, 2, 10}, {1, 3, 10}, {2, 3, 4}, {1, 2, 5}}), 7);
}

TEST(FlowNetwork, SendsFlowBackWhereThatHelps) {
  // A first path 0-1-2-3 has to give way to 0-1-3 and 0-2-3.
  EXPECT_EQ(cut_of(4, {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {0, 2, 1}, {1, 3, 1}}), 2);
}

TEST(FlowNetwork, TakesTheCutNearestToTheSink) {
  std::vector<bool> side;
  EXPECT_EQ(cut_of(4, {{0, 1, 2}, {1, 2, 2}, {2, 3, 2}}, &side), 2);
  EXPECT_EQ(side, (std::vector<bool>{true, true, true, false}));
}

TEST(FlowNetwork, GoesAroundUnboundedEdges) {
  constexpr double kUnbounded = FlowNetwork::kUnbounded;
  EXPECT_EQ(cut_of(4, {{0, 1, kUnbounded}, {1, 2, 8}, {2, 3, kUnbounded}}), 8);
}

}  // namespace
}  // namespace shardplan::compiled
