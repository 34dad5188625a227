// What a graph adds to the operations that it is given.
#include "model/graph.h"

#include <gtest/gtest.h>

namespace shardplan {
namespace {

/// peft adds adapters to the weights of experts outside of autocast: in fp32 where those are.
TEST(Graph, LeavesAnOperationOutsideOfAutocastThere) {
  Graph g;
  const ValueId x = g.op(Op{OpKind::batch}, {8, Scale::tokens});
  Op op{OpKind::matmul, {x, x, kNone}};
  g.op(op, {8, Scale::tokens});
  EXPECT_TRUE(g.ops().back().autocast);
  op.autocast = false;
  g.op(op, {8, Scale::tokens});
  EXPECT_FALSE(g.ops().back().autocast);
}

}  // namespace
}  // namespace shardplan
