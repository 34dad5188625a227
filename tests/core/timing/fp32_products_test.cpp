// Products in fp32, whose tiles fill a GPU or do not.
#include <gtest/gtest.h>

#include <vector>

#include "support/plan_testing.h"
#include "timing/kernel_time.h"
#include "timing/product_time.h"
#include "timing/timed_kernel.h"

namespace shardplan::fp32_products_test {
namespace {

Plan plan_of_gpu() {
  Plan plan = plan_of(FrameworkKind::single, "bf16-pure", 1);
  plan.cluster.gpu.memory_bandwidth = 1e13;
  plan.cluster.gpu.multiprocessors = 100;
  plan.cluster.gpu.peak[PeakRate::fp32] = 1e13;
  plan.cluster.gpu.peak[PeakRate::bf16] = 1e14;
  return plan;
}

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel p;
  p.kind = KernelKind::product;
  p.type = DType::f32;
  p.m = m;
  p.n = n;
  p.k = k;
  return p;
}

double seconds(const Kernel& k, const Plan& plan) {
  std::vector<TimedKernel> timed;
  time_kernels(std::vector<Kernel>{k}, plan, {}, timed);
  return timed.front().sequence.busy;
}

TEST(Fp32Products, OfFewTilesLeaveMultiprocessorsIdle) {
  const Plan plan = plan_of_gpu();
  const double full = seconds(product(1280, 1280, 256), plan);  // 100 tiles
  const double small = seconds(product(128, 1280, 256), plan);  // 10
  EXPECT_GT(small, 1.5 * full / 10);
}

// Of 64 rows in the mean some experts have more than a tile.
TEST(Fp32Products, WhoseRowsDifferFillHalfOfTheirLastTile) {
  const Plan plan = plan_of_gpu();
  Kernel p = product(1024, 1280, 4096);
  const double even = seconds(p, plan);
  p.uneven = true;
  EXPECT_GT(seconds(p, plan), 1.02 * even);
}

// Multiplied over few columns, each tile is done before it reads and writes the result.
TEST(Products, ThatAreAddedToWhatIsThereMoveItBehindTheirTiles) {
  const Plan plan = plan_of_gpu();
  for (const DType type : {DType::f32, DType::bf16}) {
    Kernel p = product(12800, 12800, 32), apart = p;
    p.type = apart.type = type;
    p.adds = true;
    const double moved = product_bytes(p) / (KernelRates{}.product.memory * 1e13);
    EXPECT_GT(seconds(p, plan), seconds(apart, plan) + 0.8 * moved);
  }
}

}  // namespace
}  // namespace shardplan::fp32_products_test
