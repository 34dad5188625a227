// Products that leave a part of the GPU idle, or read what they are added to.
#include <gtest/gtest.h>

#include "support/plan_testing.h"
#include "timing/kernel_time.h"
#include "timing/timed_kernel.h"

namespace shardplan::small_products_test {
namespace {

double seconds(Kernel k) {
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.cluster.gpu.memory_bandwidth = 4.8e12;
  plan.cluster.gpu.multiprocessors = 132;
  plan.cluster.gpu.peak[PeakRate::fp32] = 67e12;
  plan.cluster.gpu.peak[PeakRate::bf16] = 989e12;
  k.kind = KernelKind::product;
  return kernel_seconds(k, peaks_of(plan.cluster.gpu, plan.precision.compute), {});
}

Kernel in_fp32(std::int64_t m) {
  Kernel k;
  k.m = m;
  k.n = k.k = 2048;
  return k;
}

// An expert's 96 rows are 16 of the largest tiles, for 132 multiprocessors.
TEST(SmallProducts, InFp32TakeLongerThanTheirShareOfTheRate) {
  const double large = seconds(in_fp32(8192)) / 8192;
  EXPECT_NEAR(seconds(in_fp32(4096)) / 4096, large, 0.02 * large);
  EXPECT_GT(seconds(in_fp32(96)) / 96, 1.2 * large);
}

// The result is nearly all that is moved; it is read too, and that of a batch not as fast: more
// than two times as long.
TEST(SmallProducts, OfABatchThatAddReadTheirResultSlowly) {
  Kernel factors;
  factors.type = DType::bf16;
  factors.m = factors.n = 2048;
  factors.k = 8;
  factors.batch = 64;
  const double alone = seconds(factors);
  factors.adds = true;
  EXPECT_GT(seconds(factors) / alone, 2.5);
}

}  // namespace
}  // namespace shardplan::small_products_test
