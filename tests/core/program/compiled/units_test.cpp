// Which kernels Inductor makes of a pass, and over what they write (PyTorch 2.11,
// torch/_inductor/scheduler.py).
#include "program/compiled/units.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "program/compiled/inlined.h"

namespace shardplan::compiled {
namespace {

struct SmallGraph : JointGraph {
  NodeId add(NodeKind kind, std::initializer_list<NodeId> in, bool backward) {
    Node node;
    node.kind = kind;
    node.elements = 4096;
    node.op = 0;
    node.backward = backward;
    for (const NodeId id : in) node.in[node.inputs++] = id;
    nodes.push_back(node);
    return end() - 1;
  }
  std::vector<Unit> units(std::initializer_list<NodeId> wanted) const {
    Pass pass{{}, std::vector<bool>(nodes.size()), std::vector<bool>(nodes.size())};
    for (std::size_t id = 0; id < nodes.size(); ++id)
      pass.there[id] = nodes[id].kind == NodeKind::input;
    for (const NodeId id : wanted) pass.wanted[static_cast<std::size_t>(id)] = true;
    pass.together = pass.postpones = true;
    pass.order = order_of(*this, pass);
    return units_of(*this, pass);
  }
};

// silu(gate) * up backward, as in a wrapper of Llama: the gradient is read for both results, the
// second factor for one of them alone.
TEST(CompiledUnits, WriteOverWhatNoOtherNodeReads) {
  constexpr NodeId kGradient = 0, kGate = 1, kUp = 2, kOfUp = 3, kOfGate = 4;
  const Unit unit{.nodes = {{kOfUp, {kGradient, kGate}}, {kOfGate, {kGradient, kGate, kUp}}}};
  EXPECT_TRUE(may_write_over(unit, unit.nodes[1], kUp));
  EXPECT_FALSE(may_write_over(unit, unit.nodes[1], kGradient));
  EXPECT_FALSE(may_write_over(unit, unit.nodes[0], kGate));
  EXPECT_FALSE(may_write_over(unit, unit.nodes[0], kUp)) << "it does not read that";
}

// A norm's gradient waits for the sum of its rows, which has read the same before.
TEST(CompiledUnits, WriteOverWhatTheyWaitForHasRead) {
  constexpr NodeId kRead = 0, kSum = 1, kResult = 2;
  const Unit unit{.nodes = {{kSum, {kRead}}, {kResult, {kRead, kSum}}}};
  EXPECT_TRUE(may_write_over(unit, unit.nodes[1], kRead));
  EXPECT_FALSE(may_write_over(unit, unit.nodes[0], kRead));
}

TEST(CompiledUnits, MakeAllGradientsOfAttentionTogether) {
  SmallGraph graph;
  const NodeId gradient = graph.add(NodeKind::input, {}, true);
  const NodeId query = graph.add(NodeKind::attention, {gradient}, true);
  const NodeId changed = graph.add(NodeKind::pointwise, {query}, true);
  const NodeId key = graph.add(NodeKind::attention, {query}, true);
  const std::vector<Unit> units = graph.units({changed, key});
  ASSERT_EQ(units.size(), 2U);
  EXPECT_EQ(units[0].writes, (std::vector<NodeId>{query, key}));
}

// silu(gate) * up, which only the gradient of a weight needs, goes into the kernel that reads gate
// and up for their gradients, as in a wrapper of Llama with checkpoints.
TEST(CompiledUnits, DrawInWhatReadsTheSameAndIsNeededLater) {
  SmallGraph graph;
  const NodeId gate = graph.add(NodeKind::input, {}, false);
  const NodeId up = graph.add(NodeKind::input, {}, false);
  const NodeId tangent = graph.add(NodeKind::input, {}, true);
  const NodeId product = graph.add(NodeKind::pointwise, {gate, up}, false);
  const NodeId gradient = graph.add(NodeKind::product, {tangent}, true);
  const NodeId of_gate = graph.add(NodeKind::pointwise, {gradient, gate, up}, true);
  const NodeId of_weight = graph.add(NodeKind::product, {tangent, product}, true);
  const NodeId handed = graph.add(NodeKind::product, {of_gate}, true);
  const std::vector<Unit> units = graph.units({of_weight, handed});
  ASSERT_EQ(units.size(), 4U);
  EXPECT_EQ(units[1].writes, (std::vector<NodeId>{product, of_gate}));
}

// An adapter's product of that, which its next factor's gradient reads alone, comes behind the
// kernel, as in a wrapper of GPT-Neo with adapters and checkpoints.
TEST(CompiledUnits, PostponeWhatReadsSuchAResult) {
  SmallGraph graph;
  const NodeId gate = graph.add(NodeKind::input, {}, false);
  const NodeId up = graph.add(NodeKind::input, {}, false);
  const NodeId tangent = graph.add(NodeKind::input, {}, true);
  const NodeId product = graph.add(NodeKind::pointwise, {gate, up}, false);
  const NodeId adapted = graph.add(NodeKind::product, {product}, false);
  const NodeId gradient = graph.add(NodeKind::product, {tangent}, true);
  const NodeId of_gate = graph.add(NodeKind::pointwise, {gradient, gate, up}, true);
  const NodeId of_factor = graph.add(NodeKind::product, {tangent, adapted}, true);
  const NodeId handed = graph.add(NodeKind::product, {of_gate}, true);
  std::vector<Unit> units = graph.units({of_factor, handed});
  std::erase_if(units, [](const Unit& unit) { return unit.writes.empty(); });
  ASSERT_EQ(units.size(), 5U);
  EXPECT_EQ(units[1].writes, (std::vector<NodeId>{product, of_gate}));
  EXPECT_EQ(units[2].writes, std::vector<NodeId>{adapted});
}

// More than thirty operations that lead to it give it a buffer, which two kernels may need; one
// that is found twice counts once, and what is not counted is no reason.
TEST(CompiledUnits, WriteDownWhatIsLong) {
  SmallGraph graph;
  const NodeId first = graph.add(NodeKind::input, {}, false);
  NodeId last = first, before = first;
  for (int k = 0; k < 15; ++k) {
    before = last;
    last = graph.add(NodeKind::pointwise, {last, last}, false);
    graph.at(last).operations = 2;
  }
  const std::vector<NodeId> order =
      order_of(graph, {{}, std::vector<bool>(graph.nodes.size()), [&] {
                         std::vector<bool> wanted(graph.nodes.size());
                         wanted.back() = true;
                         return wanted;
                       }()});
  std::vector<bool> stored(graph.nodes.size(), false);
  stored[0] = true;
  const auto is_long = [&](NodeId id) {
    return bool{too_long_to_inline(graph, order, stored)[static_cast<std::size_t>(id)]};
  };
  EXPECT_TRUE(is_long(last)) << "thirty, and what is read";
  EXPECT_FALSE(is_long(before));
  graph.at(before).operations = 0;
  EXPECT_FALSE(is_long(last));
}

}  // namespace
}  // namespace shardplan::compiled
