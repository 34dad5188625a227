// Types, names and gradients of the values of a graph.
#include <gtest/gtest.h>

#include "core/program/tape/tape_testing.h"
#include "program/tape/name_lifetimes.h"

namespace shardplan::tape {
namespace {

using Kind = TapeEvent::Kind;

TEST(GraphView, ReadsAndMakesLinearsInTheTypeOfAutocast) {
  TestRun pure(two_linears()), autocast(two_linears(), kTestAutocast);
  for (TestRun* run : {&pure, &autocast}) run->set_types();
  EXPECT_EQ(pure.parts.view.read_type(pure.op(0), 0), DType::bf16);
  EXPECT_EQ(autocast.parts.view.state(autocast.op(0).in[0]).dtype, DType::f32);
  EXPECT_EQ(autocast.parts.view.read_type(autocast.op(0), 0), DType::bf16);
  EXPECT_EQ(autocast.parts.view.state(autocast.op(1).out).dtype, DType::bf16);
  EXPECT_EQ(autocast.parts.view.parameter_type(autocast.op(0).weight), DType::f32);
}

TEST(GraphView, SizesValuesByTokens) {
  TestRun run(two_linears());
  EXPECT_EQ(run.parts.view.bytes_of(run.op(0).out, DType::bf16), 2 * 4 * kTestWidth * kTestTokens);
  EXPECT_EQ(run.parts.view.count_of(run.op(0).in[0]),
            static_cast<double>(kTestWidth * kTestTokens));
}

TEST(GraphView, TakesCastsThatHaveNothingToDoForAliases) {
  ModelBuilder m({});
  Graph& g = m.begin_segment("casts");
  const ValueId x = g.chained_input({kTestWidth, Scale::tokens});
  g.set_output(g.map(OpKind::to_f32, x));
  const Model model = m.build();
  EXPECT_FALSE(
      TestRun(model).parts.view.is_alias(model.segments[0].graph.ops()[0], TapeMode::keep));
  TestRun wide(model, {DType::f32, DType::f32});
  EXPECT_TRUE(wide.parts.view.is_alias(wide.op(0), TapeMode::keep));
}

TEST(NameEnds, FollowTheLastUse) {
  const Model model = two_linears();
  const std::vector<NameEnd> ends = name_ends(model.segments[0].graph, TapeMode::keep);
  ASSERT_EQ(ends.size(), 1U);  // neither the input nor the output
  EXPECT_EQ(ends[0].after, 1);
  EXPECT_EQ(ends[0].value, model.segments[0].graph.ops()[0].out);
}

TEST(NameEnds, WaitForAHoldAndForACallerThatLetsItsInputGo) {
  ModelBuilder m({});
  Graph& g = m.begin_segment("layer");
  const ValueId x = g.chained_input({kTestWidth, Scale::tokens});
  const ValueId a = g.map(OpKind::silu, x);
  const ValueId b = g.map(OpKind::silu, a);
  const ValueId c = g.map(OpKind::silu, b);
  g.hold(a, c);
  g.let_input_go();
  g.set_output(c);
  const Model model = m.build();
  const Graph& graph = model.segments[0].graph;
  EXPECT_EQ(name_ends(graph, TapeMode::keep), (std::vector<NameEnd>{{0, x}, {2, a}, {2, b}}));
  // A checkpoint needs its input again.
  EXPECT_EQ(name_ends(graph, TapeMode::redo), (std::vector<NameEnd>{{2, a}, {2, b}}));
}

struct GradientTest {
  GradientTest() : run(two_linears()) {
    run.set_types();
    run.parts.writer.begin_backward();
    run.parts.gradients.begin();
  }
  Gradients& gradients() { return run.parts.gradients; }
  TestRun run;
};

TEST(Gradients, AreAddedInPlaceWhereNobodyElseHoldsTheFirst) {
  GradientTest t;
  const ValueId value = t.run.op(0).out;
  const StorageId first = t.gradients().allocate_like(value, DType::bf16);
  t.gradients().give(value, first);
  t.gradients().give(value, t.gradients().allocate_like(value, DType::bf16));
  EXPECT_EQ(kinds_of(t.run.run.backward), (std::vector{Kind::alloc, Kind::alloc}));
  t.gradients().settle();  // the node is done
  EXPECT_EQ(t.gradients().storage(value), first);
  EXPECT_EQ(kinds_of(t.run.run.backward), (std::vector{Kind::alloc, Kind::alloc, Kind::free}));
  EXPECT_EQ(t.run.run.backward_kernels.size(), 1U);  // the sum
}

TEST(Gradients, AreAddedInANewTensorWhereSomebodyDoes) {
  GradientTest t;
  const ValueId value = t.run.op(0).out;
  const StorageId first = t.gradients().allocate_like(value, DType::bf16);
  t.run.parts.storages.ref(first);
  t.gradients().give(value, first);
  t.gradients().give(value, t.gradients().allocate_like(value, DType::bf16));
  t.gradients().settle();
  EXPECT_NE(t.gradients().storage(value), first);
  EXPECT_EQ(kinds_of(t.run.run.backward),
            (std::vector{Kind::alloc, Kind::alloc, Kind::alloc, Kind::free}));
}

// A view's base holds what it shows, so that the first two make a new tensor, which takes the
// third.
TEST(Gradients, OfViewsAreAddedInANewTensorOnce) {
  GradientTest t;
  const ValueId value = t.run.op(0).out;
  for (int i = 0; i < 3; ++i) {
    t.gradients().give_view(value, t.gradients().allocate_like(value, DType::bf16));
    t.gradients().settle();
  }
  EXPECT_EQ(kinds_of(t.run.run.backward),
            (std::vector{Kind::alloc, Kind::alloc, Kind::alloc, Kind::free, Kind::free, Kind::alloc,
                         Kind::free}));
}

TEST(Gradients, GoWhereNoneIsNeeded) {
  GradientTest t;
  const ValueId value = t.run.op(0).out;
  t.run.parts.view.state(value).needs_grad = false;
  t.gradients().give(value, t.gradients().allocate_like(value, DType::bf16));
  EXPECT_FALSE(t.gradients().has(value));
  EXPECT_EQ(kinds_of(t.run.run.backward), (std::vector{Kind::alloc, Kind::free}));
}

TEST(Gradients, OfParametersAreInTheirType) {
  GradientTest t;
  t.gradients().give_parameter(t.run.op(0).weight);
  t.gradients().give_parameter(kNone);
  ASSERT_EQ(t.run.run.backward.size(), 1U);
  EXPECT_EQ(t.run.run.backward[0].kind, Kind::gradient);
  EXPECT_EQ(t.run.run.backward[0].bytes, 2 * 4 * kTestWidth * kTestWidth);
}

}  // namespace
}  // namespace shardplan::tape
