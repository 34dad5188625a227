#include "program/compiled/partition.h"

#include <gtest/gtest.h>

#include "program/compiled/units.h"

namespace shardplan::compiled {
namespace {

NodeId add(JointGraph& graph, NodeKind kind, std::initializer_list<NodeId> in,
           std::int64_t elements, DType type = DType::bf16) {
  Node node;
  node.kind = kind;
  node.type = type;
  node.elements = elements;
  for (const NodeId id : in) {
    node.in[node.inputs++] = id;
    node.backward = node.backward || graph.at(id).backward;
  }
  graph.nodes.push_back(node);
  return graph.end() - 1;
}

constexpr std::int64_t kMany = 1 << 20, kRows = 1 << 10;

NodeId add_tangent(JointGraph& graph) {
  const NodeId tangent = add(graph, NodeKind::input, {}, kMany);
  graph.at(tangent).backward = true;
  return tangent;
}

/// x·W, an activation of it, and a product of that: a plain MLP.
struct Mlp {
  JointGraph graph;
  NodeId x = add(graph, NodeKind::chained, {}, kMany);
  NodeId w1 = add(graph, NodeKind::input, {}, kMany);
  NodeId inner = add(graph, NodeKind::product, {x, w1}, kMany);
  NodeId active = add(graph, NodeKind::pointwise, {inner}, kMany);
  NodeId w2 = add(graph, NodeKind::input, {}, kMany);
  NodeId out = add(graph, NodeKind::product, {active, w2}, kMany);
  NodeId first_backward = graph.end();
  NodeId tangent = add_tangent(graph);
};

TEST(Partition, KeepsWhatProductsOfTheBackwardPassRead) {
  Mlp m;
  add(m.graph, NodeKind::product, {m.tangent, m.active}, kMany);
  const NodeId d = add(m.graph, NodeKind::product, {m.tangent, m.w2}, kMany);
  add(m.graph, NodeKind::pointwise, {d, m.inner}, kMany);
  const std::vector<bool> kept = kept_nodes(m.graph, m.first_backward, kNone);
  EXPECT_TRUE(kept[static_cast<std::size_t>(m.active)]);
  EXPECT_TRUE(kept[static_cast<std::size_t>(m.inner)]);
  EXPECT_FALSE(kept[static_cast<std::size_t>(m.out)]);
}

/// Scores in 16 bits, a mask in fp32, and what their sum is made into, in whose place the scores
/// would be kept.
TEST(Partition, DoesNotComputeAgainWhatReadsAMaskBehindAProduct) {
  for (const bool before : {false, true}) {
    Mlp m;
    m.graph.nodes.resize(static_cast<std::size_t>(m.active));
    const NodeId mask = add(m.graph, NodeKind::input, {}, kRows, DType::f32);
    m.graph.at(mask).used_before = before;
    const NodeId sum = add(m.graph, NodeKind::pointwise, {m.inner, mask}, kMany, DType::f32);
    const NodeId wide = add(m.graph, NodeKind::pointwise, {sum}, kMany, DType::f32);
    m.first_backward = m.graph.end();
    const NodeId tangent = add_tangent(m.graph);
    add(m.graph, NodeKind::pointwise, {tangent, wide}, kMany);
    const std::vector<bool> kept = kept_nodes(m.graph, m.first_backward, kNone);
    EXPECT_EQ(kept[static_cast<std::size_t>(m.inner)], !before);
    EXPECT_EQ(kept[static_cast<std::size_t>(wide)], before);
  }
}

TEST(Partition, ComputesAgainWhatIsElementByElement) {
  Mlp m;  // of a frozen second weight nothing needs the activation as a whole
  m.graph.at(m.active).type = DType::f32;
  const NodeId d = add(m.graph, NodeKind::product, {m.tangent, m.w2}, kMany);
  add(m.graph, NodeKind::pointwise, {d, m.active}, kMany);
  const std::vector<bool> kept = kept_nodes(m.graph, m.first_backward, kNone);
  EXPECT_TRUE(kept[static_cast<std::size_t>(m.inner)]);
  EXPECT_FALSE(kept[static_cast<std::size_t>(m.active)]);
}

TEST(Partition, KeepsWhatIsNearerToTheBackwardPass) {
  Mlp m;  // as large as the product that it is computed from
  const NodeId d = add(m.graph, NodeKind::product, {m.tangent, m.w2}, kMany);
  add(m.graph, NodeKind::pointwise, {d, m.active}, kMany);
  const std::vector<bool> kept = kept_nodes(m.graph, m.first_backward, kNone);
  EXPECT_FALSE(kept[static_cast<std::size_t>(m.inner)]);
  EXPECT_TRUE(kept[static_cast<std::size_t>(m.active)]);
}

TEST(Partition, KeepsTheNarrowSideOfACast) {
  JointGraph graph;
  const NodeId x = add(graph, NodeKind::chained, {}, kMany);
  const NodeId wide = add(graph, NodeKind::pointwise, {x}, kMany, DType::f32);
  const NodeId statistic = add(graph, NodeKind::reduction, {wide}, kRows, DType::f32);
  const NodeId first = graph.end();
  const NodeId tangent = add_tangent(graph);
  add(graph, NodeKind::pointwise, {tangent, wide, statistic}, kMany);
  const std::vector<bool> kept = kept_nodes(graph, first, kNone);
  EXPECT_TRUE(kept[static_cast<std::size_t>(x)]);
  EXPECT_FALSE(kept[static_cast<std::size_t>(wide)]);
  EXPECT_TRUE(kept[static_cast<std::size_t>(statistic)]);
}

TEST(Partition, DoesNotMakeWhatIsReturnedAgain) {
  Mlp m;
  const NodeId d = add(m.graph, NodeKind::product, {m.tangent, m.w2}, kMany);
  add(m.graph, NodeKind::pointwise, {d, m.active}, kMany);
  EXPECT_TRUE(kept_nodes(m.graph, m.first_backward, m.active)[static_cast<std::size_t>(m.active)]);
}

/// A norm behind a block that is computed again; the backward pass reads what it has normalized.
struct Behind {
  JointGraph graph;
  NodeId x = add(graph, NodeKind::chained, {}, kMany);
  NodeId wide = add(graph, NodeKind::pointwise, {x}, kMany, DType::f32);
  NodeId normal = add(graph, NodeKind::pointwise, {wide}, kMany);
  NodeId scaled = add(graph, NodeKind::pointwise, {normal}, kMany);
  NodeId w = add(graph, NodeKind::input, {}, kMany);
  NodeId out = add(graph, NodeKind::product, {scaled, w}, kMany);
  NodeId first_backward = graph.end();
  NodeId tangent = add_tangent(graph);

  Behind() {
    graph.at(x).resident = true;
    add(graph, NodeKind::product, {tangent, scaled}, kMany);
    const NodeId d = add(graph, NodeKind::product, {tangent, w}, kMany);
    add(graph, NodeKind::pointwise, {d, normal}, kMany);
  }

  bool keeps_normal(std::int64_t in_front) const {
    const ChainInFront chain{in_front, {0, 1, 2, 3, 3, 6}};
    return kept_nodes(graph, first_backward, kNone, chain)[static_cast<std::size_t>(normal)];
  }
};

TEST(Partition, EndsALongChainThatFuses) {
  const Behind behind;
  EXPECT_FALSE(behind.keeps_normal(0));
  EXPECT_FALSE(behind.keeps_normal(98));  // it ends at what the product reads, kept anyway
  EXPECT_TRUE(behind.keeps_normal(99));
  EXPECT_FALSE(behind.keeps_normal(101));  // it has ended before
}

Pass pass_over(const JointGraph& graph, std::initializer_list<NodeId> wanted) {
  Pass pass{{},
            std::vector<bool>(graph.nodes.size(), false),
            std::vector<bool>(graph.nodes.size(), false)};
  for (NodeId id = 0; id < graph.end(); ++id) {
    const NodeKind kind = graph.at(id).kind;
    if (kind == NodeKind::input || kind == NodeKind::chained)
      pass.there[static_cast<std::size_t>(id)] = true;
    else
      pass.order.push_back(id);
  }
  for (const NodeId id : wanted) pass.wanted[static_cast<std::size_t>(id)] = true;
  return pass;
}

TEST(Units, ComputePointwiseValuesWhereTheyAreRead) {
  JointGraph graph;
  const NodeId x = add(graph, NodeKind::chained, {}, kMany);
  const NodeId a = add(graph, NodeKind::pointwise, {x}, kMany);
  const NodeId b = add(graph, NodeKind::pointwise, {a}, kMany);
  const std::vector<Unit> units = units_of(graph, pass_over(graph, {b}));
  ASSERT_EQ(units.size(), 1U);
  EXPECT_EQ(units[0].reads, std::vector<NodeId>{x});
  EXPECT_EQ(units[0].writes, std::vector<NodeId>{b});
}

TEST(Units, FuseANormWithItsStatistics) {
  JointGraph graph;
  const NodeId x = add(graph, NodeKind::chained, {}, kMany);
  const NodeId sum = add(graph, NodeKind::reduction, {x}, kRows);
  const NodeId normal = add(graph, NodeKind::pointwise, {x, sum}, kMany);
  const std::vector<Unit> units = units_of(graph, pass_over(graph, {normal}));
  ASSERT_EQ(units.size(), 1U);
  EXPECT_EQ(units[0].writes, std::vector<NodeId>{normal});  // the sum stays inside
}

/// A bias's gradient: what goes along rows reads the same tensor, in another order.
TEST(Units, LeaveASumOfColumnsAlone) {
  JointGraph graph;
  const NodeId g = add(graph, NodeKind::chained, {}, kMany);
  const NodeId a = add(graph, NodeKind::pointwise, {g}, kMany);
  const NodeId sum = add(graph, NodeKind::reduction, {g}, kRows);
  graph.at(sum).alone = true;
  const NodeId b = add(graph, NodeKind::pointwise, {g}, kMany);
  const std::vector<Unit> units = units_of(graph, pass_over(graph, {a, sum, b}));
  ASSERT_EQ(units.size(), 2U);
  EXPECT_EQ(units[0].writes, (std::vector<NodeId>{a, b}));
  EXPECT_EQ(units[1].writes, std::vector<NodeId>{sum});
}

TEST(Units, FuseAcrossACallWhatHasItsOperandsBefore) {
  JointGraph graph;
  const NodeId x = add(graph, NodeKind::chained, {}, kMany);
  const NodeId w = add(graph, NodeKind::input, {}, kMany);
  const NodeId a = add(graph, NodeKind::pointwise, {x}, kMany);
  const NodeId product = add(graph, NodeKind::product, {a, w}, kMany);
  const NodeId b = add(graph, NodeKind::pointwise, {x}, kMany);
  const std::vector<Unit> units = units_of(graph, pass_over(graph, {product, b}));
  ASSERT_EQ(units.size(), 2U);
  EXPECT_EQ(units[0].writes, (std::vector<NodeId>{a, b}));
  EXPECT_TRUE(units[1].call);
}

// A sum behind an adapter's product waits for the kernel that reads it, and so do its operands.
TEST(Units, DrawWhatIsReadOnceIntoItsReader) {
  JointGraph graph;
  const NodeId x = add(graph, NodeKind::chained, {}, kMany);
  const NodeId gate = add(graph, NodeKind::product, {x}, kMany);
  const NodeId sum = add(graph, NodeKind::pointwise, {gate, x}, kMany);
  const NodeId up = add(graph, NodeKind::product, {x}, kMany);
  const NodeId active = add(graph, NodeKind::pointwise, {sum, up}, kMany);
  const std::vector<Unit> units = units_of(graph, pass_over(graph, {sum, active}));
  ASSERT_EQ(units.size(), 3U);
  EXPECT_TRUE(units[1].call);
  EXPECT_EQ(units[2].writes, (std::vector<NodeId>{sum, active}));
  EXPECT_EQ(units[2].reads.size(), 3U);
}

TEST(Units, LeaveWhatAKernelBetweenNeeds) {
  JointGraph graph;
  const NodeId x = add(graph, NodeKind::chained, {}, kMany);
  const NodeId gate = add(graph, NodeKind::product, {x}, kMany);
  const NodeId sum = add(graph, NodeKind::pointwise, {gate, x}, kMany);
  const NodeId up = add(graph, NodeKind::product, {sum}, kMany);
  const NodeId active = add(graph, NodeKind::pointwise, {sum, up}, kMany);
  const std::vector<Unit> units = units_of(graph, pass_over(graph, {sum, active}));
  ASSERT_EQ(units.size(), 4U);
  EXPECT_EQ(units[1].writes, std::vector<NodeId>{sum});
}

}  // namespace
}  // namespace shardplan::compiled
