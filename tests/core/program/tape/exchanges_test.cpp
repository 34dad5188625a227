#include "program/tape/exchanges.h"

#include <gtest/gtest.h>

#include "core/program/tape/tape_testing.h"
#include "program/tape/exchange_rules.h"

namespace shardplan::tape {
namespace {

using Kind = TapeEvent::Kind;

/// x is gathered, multiplied, multiplied again and reduced: a tensor-parallel MLP.
Model sharded_mlp() {
  ModelBuilder m({});
  const LinearModule up = m.linear("up", kTestWidth, 4 * kTestWidth);
  const LinearModule down = m.linear("down", 4 * kTestWidth, kTestWidth);
  Graph& g = m.begin_segment("layer");
  const ValueId x = g.chained_input({kTestWidth, Scale::tokens});
  Op gather{OpKind::communicate, {x, kNone, kNone}};
  gather.exchange.forward = Exchange::all_gather;
  gather.exchange.backward = Exchange::reduce_scatter;
  const ValueId whole = g.op(gather, {kTestWidth, Scale::tokens});
  Op scatter{OpKind::communicate, {apply(g, down, apply(g, up, whole)), kNone, kNone}};
  scatter.exchange.forward = Exchange::reduce_scatter;
  scatter.exchange.backward = Exchange::all_gather;
  g.set_output(g.op(scatter, {kTestWidth, Scale::tokens}));
  return m.build();
}

constexpr std::int64_t kPayload = 2 * kTestWidth * kTestTokens;

TEST(ExchangeRules, SendTheLargerOfWhatGoesInAndComesOut) {
  TestRun run(sharded_mlp());
  run.set_types();
  EXPECT_EQ(payload_of(run.parts.view, run.op(0), DType::bf16), kPayload);
  Op op = run.op(0);
  op.exchange.payload = {3, Scale::one};
  EXPECT_EQ(payload_of(run.parts.view, op, DType::bf16), 6);
}

TEST(ExchangeRules, FindTheProductsAroundAnExchange) {
  const Model model = sharded_mlp();
  const Graph& graph = model.segments[0].graph;
  const auto& ops = graph.ops();
  EXPECT_EQ(last_linear_of(graph, ops[0].out), 1);
  EXPECT_EQ(last_linear_of(graph, ops[2].out), kNone);  // read by an exchange
  EXPECT_EQ(maker_of(graph, ops[1].out), &ops[1]);
  EXPECT_EQ(maker_of(graph, ops[0].in[0]), nullptr);
  EXPECT_TRUE(is_scattered_next(graph, ops[2]));
  EXPECT_FALSE(is_scattered_next(graph, ops[1]));
  EXPECT_TRUE(is_gradient_reduced(graph, ops[1]));
  EXPECT_FALSE(is_gradient_reduced(graph, ops[2]));
}

TEST(Exchanges, AreWaitedForUnlessTheyAreCut) {
  TestRun run(sharded_mlp());
  run.set_types();
  run.parts.exchanges.send_forward(run.op(0), DType::bf16);
  EXPECT_EQ(kinds_of(run.run.forward), (std::vector{Kind::exchange, Kind::wait}));
  EXPECT_EQ(run.run.exchanges[0].bytes, kPayload);
}

TEST(Exchanges, CutIntoPartsHideBehindTheProductThatReadsThem) {
  TestRun run(sharded_mlp(), kTestPure, TapeMode::keep, {.gather_chunks = 4});
  run.set_types();
  run.parts.exchanges.send_forward(run.op(0), DType::bf16);
  run.parts.exchanges.launch_forward(run.op(1),
                                     product_kernel(run.parts.view, run.op(1), DType::bf16));
  run.parts.writer.flush();
  // Three parts are multiplied while the last is on its way.
  EXPECT_EQ(kinds_of(run.run.forward),
            (std::vector{Kind::exchange, Kind::compute, Kind::wait, Kind::compute}));
  ASSERT_EQ(run.run.forward_kernels.size(), 2U);
  EXPECT_EQ(run.run.forward_kernels[0].batch, 3);
  EXPECT_EQ(run.run.forward_kernels[0].m, kTestTokens / 4);
  EXPECT_EQ(run.run.forward_kernels[1].batch, 1);
}

TEST(Exchanges, CutIntoPartsBeginWhileTheRestIsMultiplied) {
  TestRun run(sharded_mlp(), kTestPure, TapeMode::keep, {.scatter_chunks = 4});
  run.set_types();
  run.parts.exchanges.launch_forward(run.op(2),
                                     product_kernel(run.parts.view, run.op(2), DType::bf16));
  run.parts.exchanges.send_forward(run.op(3), DType::bf16);
  ASSERT_EQ(run.run.exchanges.size(), 2U);
  EXPECT_EQ(run.run.exchanges[0].bytes, kPayload / 4 * 3);
  EXPECT_EQ(run.run.exchanges[1].bytes, kPayload / 4);
}

TEST(Exchanges, OfAGradientRunBesideTheProductThatIsPutOffForThem) {
  TestRun run(sharded_mlp(), kTestPure, TapeMode::keep, {.hides_gradient_exchange = true});
  run.set_types();
  run.parts.writer.begin_backward();
  run.parts.exchanges.launch_backward(
      run.op(1), linear_backward_kernels(run.parts.view, run.op(1), DType::bf16));
  EXPECT_EQ(run.run.backward_kernels.size(), 1U);  // the input's
  run.parts.exchanges.send_backward(run.op(0), DType::bf16);
  EXPECT_EQ(run.run.backward_kernels.size(), 2U);
  EXPECT_EQ(kinds_of(run.run.backward),
            (std::vector{Kind::compute, Kind::exchange, Kind::compute, Kind::wait}));
}

}  // namespace
}  // namespace shardplan::tape
