// What a block that is computed again makes for the next one (PyTorch 2.11,
// torch/_inductor/scheduler.py, are_long_distant_nodes and can_fusion_increase_peak_memory).
#include "program/compiled/made_ahead.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace shardplan::compiled {
namespace {

/// Keys of a block: its input, normalized, by a weight, turned by a table that all blocks read.
class SmallBlock {
 public:
  explicit SmallBlock(std::int64_t keys, std::int64_t repeats = 4) {
    input_ = add(NodeKind::chained, {}, 4096);
    const NodeId weight = add(NodeKind::input, {}, 256);
    graph_.at(weight).resident = true;
    const NodeId table = add(NodeKind::input, {}, 64);
    graph_.at(table).used_before = true;
    normal_ = add(NodeKind::pointwise, {input_}, 4096);
    product_ = add(NodeKind::product, {normal_, weight}, keys);
    turned_ = add(NodeKind::pointwise, {product_, table}, repeats * keys);
    attention_ = add(NodeKind::attention, {turned_}, keys);
  }

  MadeAhead ahead(std::int64_t more_operations = 0) {
    for (std::int64_t k = 0; k < more_operations; ++k) add(NodeKind::product, {attention_}, 1);
    Pass pass{{}, std::vector<bool>(graph_.nodes.size()), std::vector<bool>(graph_.nodes.size())};
    for (NodeId id = 0; id < graph_.end(); ++id) {
      const NodeKind kind = graph_.at(id).kind;
      const bool given = kind == NodeKind::input || kind == NodeKind::chained;
      pass.there[static_cast<std::size_t>(id)] = given;
      pass.wanted[static_cast<std::size_t>(id)] = id >= attention_;
    }
    pass.order = order_of(graph_, pass);
    return make_ahead(graph_, pass, units_of(graph_, pass));
  }
  const Node& at(NodeId id) const { return graph_.at(id); }
  NodeId turned() const { return turned_; }

 private:
  NodeId add(NodeKind kind, std::initializer_list<NodeId> in, std::int64_t elements) {
    Node node;
    node.kind = kind;
    node.elements = elements;
    for (const NodeId id : in) node.in[node.inputs++] = id;
    graph_.nodes.push_back(node);
    return graph_.end() - 1;
  }

  JointGraph graph_;
  NodeId input_ = kNone, normal_ = kNone, product_ = kNone, turned_ = kNone, attention_ = kNone;
};

TEST(MadeAhead, IsWhatTurnsSmallKeysAndAllThatNeeds) {
  SmallBlock block(8192);  // 32 times the table's bytes
  const MadeAhead ahead = block.ahead();
  EXPECT_EQ(ahead.after, block.turned());
  ASSERT_EQ(ahead.nodes.size(), 3U) << "the norm, the product, and what is turned";
  EXPECT_EQ(block.at(ahead.nodes[1]).kind, NodeKind::product);
  for (const NodeId id : ahead.nodes) EXPECT_TRUE(block.at(id).ahead);
}

TEST(MadeAhead, IsNothingOfLargeKeys) {
  EXPECT_TRUE(SmallBlock(8200).ahead().nodes.empty());
}

TEST(MadeAhead, IsNothingOfKeysForEachHead) {
  EXPECT_TRUE(SmallBlock(1024, 1).ahead().nodes.empty());
}

TEST(MadeAhead, IsNothingOfLongBlocks) {
  EXPECT_FALSE(SmallBlock(1024).ahead(57).nodes.empty());
  EXPECT_TRUE(SmallBlock(1024).ahead(58).nodes.empty());
}

}  // namespace
}  // namespace shardplan::compiled
