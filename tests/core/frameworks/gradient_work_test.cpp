#include "frameworks/deepspeed/gradient_work.h"

#include <gtest/gtest.h>

namespace shardplan::gradient_work_test {
namespace {

constexpr GradientList kOwn{3, 3000};

Engine engine(std::int64_t ranks) {
  Engine e;
  e.ranks = ranks;
  e.checks_overflow = true;
  return e;
}

double bytes(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& k : kernels)
    if (k.elements > 1) sum += k.bytes * k.calls;
  return sum;
}

std::int32_t launches(const std::vector<Kernel>& kernels) {
  std::int32_t sum = 0;
  for (const Kernel& k : kernels) sum += k.calls;
  return sum;
}

TEST(GradientWork, CopiesEachGradientIntoItsBucket) {
  const std::vector<Kernel> copies = bucket_copies(engine(2), kOwn);
  EXPECT_EQ(launches(copies), 3);
  EXPECT_EQ(bytes(copies), 3000 * (2 + 2));
}

TEST(GradientWork, AveragesAllAndCopiesARanksPartOutOfTheBucket) {
  EXPECT_EQ(bytes(flush_kernels(engine(1), kOwn)), 3000 * (4 + 4));
  EXPECT_EQ(bytes(flush_kernels(engine(3), kOwn)), 3000 * 4 + 1000 * (4 + 4));
}

TEST(GradientWork, LooksForInfinitiesInThirteenLaunchesATensor) {
  EXPECT_EQ(launches(overflow_kernels(engine(1), kOwn)), 13 * 3);
  EXPECT_EQ(bytes(overflow_kernels(engine(1), kOwn)), 3000 * (2 + 2));
  Engine older = engine(1);
  older.overflow_copies = true;
  EXPECT_EQ(bytes(overflow_kernels(older, kOwn)), 3000 * (6 + 5 + 5 + 3 + 5 + 4));
  Engine unchecked = engine(1);
  unchecked.checks_overflow = false;
  EXPECT_TRUE(overflow_kernels(unchecked, kOwn).empty());
}

TEST(GradientWork, TakesNormsInDoubleAndCastsTheFlatCopy) {
  // Norm: cast 2 + 8, read 8. Flat copy 4, cast 2 + 4, clipping 8.
  EXPECT_EQ(bytes(flat_gradient_kernels(engine(1), kOwn)), 3000 * (10 + 8 + 4 + 6 + 8));
  Engine wide = engine(1);
  wide.b = 4;
  EXPECT_EQ(bytes(flat_gradient_kernels(wide, kOwn)), 3000 * (12 + 8 + 8 + 8)) << "no cast";
}

TEST(GradientWork, CastsEachGradientTwiceForAnUnfusedOptimizer) {
  // Norm: cast 2 + 4, read 4. The gradient's cast 2 + 4, clipping 8.
  EXPECT_EQ(bytes(apart_gradient_kernels(engine(1), kOwn)), 3000 * (6 + 4 + 6 + 8));
  EXPECT_EQ(launches(apart_gradient_kernels(engine(1), kOwn)), (4 + 2) * 3);
}

TEST(GradientWork, OfNoTensorsIsNone) {
  EXPECT_TRUE(flat_gradient_kernels(engine(1), {}).empty());
}

}  // namespace
}  // namespace shardplan::gradient_work_test
