#include "program/tape/kernels.h"

#include <gtest/gtest.h>

#include "core/program/tape/tape_testing.h"

namespace shardplan::tape {
namespace {

constexpr double kBytes = 2.0 * kTestWidth * kTestTokens;  // of a tensor as wide as x, in 16 bits

/// One op on the chained input, and on itself where it takes two.
struct OneOp {
  explicit OneOp(OpKind kind, bool two = false, Extent out = {kTestWidth, Scale::tokens},
                 const Regime& regime = kTestPure)
      : run(
            [&] {
              ModelBuilder m({});
              Graph& g = m.begin_segment("op");
              const ValueId x = g.chained_input({kTestWidth, Scale::tokens});
              g.set_output(g.op({kind, {x, two ? x : kNone, kNone}}, out));
              return m.build();
            }(),
            regime) {
    run.set_types();
  }
  KernelList forward() const { return forward_kernels(run.parts.view, run.op(0), type(), true); }
  KernelList backward() const { return backward_kernels(run.parts.view, run.op(0)); }
  DType type() const { return run.parts.view.read_type(run.op(0), 0); }
  TestRun run;
};

TEST(Kernels, OfALinearMultiplyRowsByItsWeight) {
  TestRun run(two_linears());
  run.set_types();
  const Kernel forward = product_kernel(run.parts.view, run.op(0), DType::bf16);
  EXPECT_EQ(forward.m, kTestTokens);
  EXPECT_EQ(forward.n, 4 * kTestWidth);
  EXPECT_EQ(forward.k, kTestWidth);
  const auto backward = linear_backward_kernels(run.parts.view, run.op(1), DType::bf16);
  ASSERT_TRUE(backward.input && backward.weight && backward.bias);
  EXPECT_EQ(flops_of(*backward.input), flops_of(forward));
  EXPECT_EQ(flops_of(*backward.weight), flops_of(forward));
  EXPECT_EQ(backward.weight->k, kTestTokens);  // it sums over rows
  EXPECT_EQ(backward.weight->issue, Issue::linear_node);
}

TEST(Kernels, OfALinearWhoseInputNeedsNoGradientMakeOnlyTheWeights) {
  TestRun run(two_linears(), kTestPure, TapeMode::keep, {.input_needs_grad = false});
  run.set_types();
  const auto kernels = linear_backward_kernels(run.parts.view, run.op(0), DType::bf16);
  EXPECT_FALSE(kernels.input);
  EXPECT_FALSE(kernels.bias);
  ASSERT_TRUE(kernels.weight);
  EXPECT_EQ(kernels.weight->issue, Issue::linear_node);
}

TEST(Kernels, OfASumReadBothAndWriteOne) {
  const KernelList list = OneOp(OpKind::add, true).forward();
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].kind, KernelKind::elementwise);
  EXPECT_EQ(list[0].bytes, 3 * kBytes);
}

TEST(Kernels, ThatWidenAreNotVectorised) {
  EXPECT_EQ(cast_kind(DType::bf16, DType::f32), KernelKind::strided);
  EXPECT_EQ(cast_kind(DType::f32, DType::bf16), KernelKind::elementwise);
  const KernelList list = OneOp(OpKind::to_f32).forward();
  EXPECT_EQ(list[0].kind, KernelKind::strided);
  EXPECT_EQ(list[0].bytes, 3 * kBytes);  // 2 bytes in, 4 out
}

TEST(Kernels, OfAProductOfTwoActivationsMakeAGradientForEach) {
  const KernelList list = OneOp(OpKind::mul, true).backward();
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].issue, Issue::autograd);
  EXPECT_EQ(list[1].issue, Issue::inner);
  EXPECT_EQ(list[0].bytes, 3 * kBytes);
}

TEST(Kernels, OfASliceFillZerosBackward) {
  const OneOp half(OpKind::view, false, {kTestWidth / 2, Scale::tokens});
  const KernelList list = half.backward();
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].bytes, kBytes);  // zeros of the whole
  EXPECT_EQ(list[1].kind, KernelKind::strided);
  EXPECT_EQ(OneOp(OpKind::view).backward()[0].kind, KernelKind::none);
}

TEST(Kernels, OfAVocabularyLossInFp32AreSixForwardAndTwoBackward) {
  OneOp loss(OpKind::vocabulary_loss, false, {1, Scale::one});
  Op op = loss.run.op(0);
  op.side = {kTestWidth, Scale::tokens};
  const auto calls = [&](Issue issue) {
    std::int32_t sum = 0;
    for (const Kernel& k : vocabulary_loss_kernels(loss.run.parts.view, op, issue)) sum += k.calls;
    return sum;
  };
  EXPECT_EQ(calls(Issue::python), 6);
  EXPECT_EQ(calls(Issue::autograd), 2);
}

}  // namespace
}  // namespace shardplan::tape
