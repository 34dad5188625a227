// Which tensors take the buffers of which others (PyTorch 2.11,
// torch/_inductor/codegen/wrapper.py, memory_plan_reuse).
#include "program/compiled/buffer_plan.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace shardplan::compiled {
namespace {

/// Units in their order, each a call that reads some tensors and makes one.
class SmallPass {
 public:
  NodeId make(std::initializer_list<NodeId> reads, std::int64_t elements,
              NodeKind kind = NodeKind::product) {
    Node node;
    node.kind = kind;
    node.elements = elements;
    graph_.nodes.push_back(node);
    const NodeId id = graph_.end() - 1;
    units_.push_back({.nodes = {{id, reads}}, .reads = reads, .writes = {id}, .call = true});
    return id;
  }
  /// What is there before.
  NodeId give(std::int64_t elements) {
    Node node;
    node.kind = NodeKind::input;
    node.elements = elements;
    graph_.nodes.push_back(node);
    return graph_.end() - 1;
  }
  /// A result of the last unit that stays inside of it.
  void keep_inside(std::int64_t elements) {
    Node node;
    node.elements = elements;
    graph_.nodes.push_back(node);
    units_.back().nodes.push_back({graph_.end() - 1, {}});
  }
  BufferPlan plan(std::int64_t passes = 1, std::int64_t room = 0, bool in_row = false,
                  NodeId ended = kNone) const {
    const std::size_t count = graph_.nodes.size();
    const Pass pass{{}, std::vector<bool>(count), std::vector<bool>(count)};
    std::vector<std::size_t> last(count);
    for (std::size_t u = 0; u < units_.size(); ++u)
      for (const auto* used : {&units_[u].reads, &units_[u].writes})
        for (const NodeId id : *used) last[static_cast<std::size_t>(id)] = u;
    const auto nothing = [](const Unit&, const Made&, const std::vector<NodeId>&) { return kNone; };
    std::vector<bool> stored(count);
    if (ended != kNone) stored[static_cast<std::size_t>(ended)] = true;
    return plan_buffers({graph_, pass, units_, last, stored, passes, in_row, room, nothing});
  }

 private:
  JointGraph graph_;
  std::vector<Unit> units_;
};

NodeId taken_by(const BufferPlan& plan, NodeId id) {
  return plan.takes[static_cast<std::size_t>(id)].by;
}

TEST(BufferPlan, HandsOverWhatTheUnitBeforeHasLeft) {
  SmallPass pass;
  const NodeId first = pass.make({}, 1000);
  const NodeId second = pass.make({first}, 1000);
  const NodeId third = pass.make({second}, 1000);
  EXPECT_EQ(taken_by(pass.plan(), third), first);
  EXPECT_EQ(taken_by(pass.plan(), second), kNone) << "it is read there";
}

// Between the two a larger tensor has the peak, beside which nothing may wait.
TEST(BufferPlan, LetsABufferGoThatWouldRaiseThePeak) {
  SmallPass pass;
  const NodeId early = pass.make({}, 1000);
  const NodeId small = pass.make({early}, 10);
  const NodeId most = pass.make({small}, 5000);
  const NodeId rest = pass.make({most}, 20);
  const NodeId late = pass.make({rest}, 1000);
  EXPECT_EQ(taken_by(pass.plan(), late), kNone);
  EXPECT_FALSE(pass.plan().waits[static_cast<std::size_t>(early)]);
  EXPECT_EQ(taken_by(pass.plan(1, 30000), late), early);
}

// What a kernel does not write down was a buffer to the scheduler.
TEST(BufferPlan, ExpectsWhatStaysInsideOfAKernel) {
  SmallPass pass;
  const NodeId early = pass.make({}, 1000);
  const NodeId small = pass.make({early}, 10);
  const NodeId middle = pass.make({small}, 20);
  pass.keep_inside(3000);
  const NodeId rest = pass.make({middle}, 30);
  const NodeId late = pass.make({rest}, 1000);
  EXPECT_EQ(taken_by(pass.plan(1, 17000), late), early);
  EXPECT_EQ(taken_by(pass.plan(1, 15000), late), kNone);
}

TEST(BufferPlan, GivesAttentionNoBuffer) {
  SmallPass pass;
  const NodeId first = pass.make({}, 1000);
  const NodeId second = pass.make({first}, 10);
  const NodeId result = pass.make({second}, 1000, NodeKind::attention);
  EXPECT_EQ(taken_by(pass.plan(1, 30000), result), kNone);
}

TEST(BufferPlan, CarriesWhatTheNextPassTakes) {
  SmallPass pass;
  const NodeId only = pass.make({}, 1000);
  pass.make({only}, 10);
  const BufferPlan plan = pass.plan(3, 30000);
  EXPECT_EQ(plan.takes[static_cast<std::size_t>(only)], (LeftBuffer{only, 1}));
  EXPECT_EQ(plan.carried.size(), 2U);
  EXPECT_TRUE(plan.waits[static_cast<std::size_t>(only)]);
  EXPECT_TRUE(pass.plan(1, 30000).carried.empty());
}

// Each pass ends an input, so that later ones begin lower, and what did not fit may wait.
TEST(BufferPlan, LetsMoreWaitWhereEachPassBeginsLower) {
  SmallPass pass;
  const NodeId input = pass.give(600);
  const NodeId only = pass.make({input}, 1000);
  const NodeId most = pass.make({only}, 500, NodeKind::attention);
  pass.keep_inside(1000);
  pass.make({most}, 1100, NodeKind::attention);
  EXPECT_EQ(taken_by(pass.plan(2, 0, true, input), only), kNone);
  EXPECT_EQ(taken_by(pass.plan(4, 0, true, input), only), only);
  EXPECT_EQ(taken_by(pass.plan(4, 0, false, input), only), kNone);
}

}  // namespace
}  // namespace shardplan::compiled
