// Products that leave a part of the GPU idle, or read what they are added to.
#include <gtest/gtest.h>

#include "support/plan_testing.h"
#include "timing/kernel_time.h"
#include "timing/timed_kernel.h"

namespace shardplan::small_products_test {
namespace {

double seconds(std::int64_t m, DType type, bool adds = false, std::int64_t depth = 2048) {
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.cluster.gpu.memory_bandwidth = 4.8e12;
  plan.cluster.gpu.multiprocessors = 132;
  plan.cluster.gpu.peak[PeakRate::fp32] = 67e12;
  plan.cluster.gpu.peak[PeakRate::bf16] = 989e12;
  Kernel k;
  k.kind = KernelKind::product;
  k.type = type;
  k.m = m;
  k.n = 2048;
  k.k = depth;
  k.adds = adds;
  return kernel_seconds(k, peaks_of(plan.cluster.gpu, plan.precision.compute), {});
}

// An expert's 96 rows are 16 of the largest tiles, for 132 multiprocessors.
TEST(SmallProducts, InFp32TakeLongerThanTheirShareOfTheRate) {
  const double large = seconds(8192, DType::f32) / 8192;
  EXPECT_NEAR(seconds(4096, DType::f32) / 4096, large, 0.02 * large);
  EXPECT_GT(seconds(96, DType::f32) / 96, 1.2 * large);
}

TEST(SmallProducts, ThatAddReadTheirResultToo) {
  constexpr std::int64_t kRank = 8;
  EXPECT_GT(seconds(8192, DType::bf16, true, kRank), 2.5 * seconds(8192, DType::bf16, false, kRank));
}

}  // namespace
}  // namespace shardplan::small_products_test
