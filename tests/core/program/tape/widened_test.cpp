// What bitsandbytes' kernels take that widen a weight of 4 bits before its product.
#include "program/tape/widened.h"

#include <gtest/gtest.h>

#include "core/program/tape/tape_testing.h"

namespace shardplan::tape {
namespace {

KernelList widening(Quantization stored) {
  Model model = two_linears();
  for (Parameter& parameter : model.parameters) parameter.stored = stored;
  TestRun test(std::move(model));
  return widening_kernels(test.parts.view, test.op(0), Issue::nested);
}

constexpr double kElements = 4 * kTestWidth * kTestWidth;

// 1.2 to 1.4 ps an element of an H200, where strided copies take 2.7.
TEST(Widened, TakesHalfOfAStridedCopysTimeForAnElement) {
  const KernelList list = widening(Quantization::nf4);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_DOUBLE_EQ(list.begin()->elements, 0.47 * kElements);
  EXPECT_DOUBLE_EQ(list.begin()->bytes, kElements * (0.5 + 2) + 4 * kElements / 64);
}

TEST(Widened, ScalesThatAreQuantizedComeFirst) {
  EXPECT_EQ(widening(Quantization::nf4_double).size(), 3u);
  EXPECT_EQ(widening(Quantization::none).size(), 0u);
}

}  // namespace
}  // namespace shardplan::tape
