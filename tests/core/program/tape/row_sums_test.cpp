// What a sum over rows keeps beside its result, against histories of allocations.
#include "program/tape/row_sums.h"

#include <gtest/gtest.h>

#include "base/units.h"

namespace shardplan::tape {
namespace {

constexpr std::int64_t kHopper = 132;  // multiprocessors

// H100 and H200, PyTorch 2.11: biases and weights of norms of Qwen2.5-0.5B and Wav2Vec2.
TEST(RowSums, KeepWhatHistoriesShow) {
  EXPECT_EQ(row_sum_scratch(8192, 896, kHopper), 56 * kMiB);
  EXPECT_EQ(row_sum_scratch(8192, 128, kHopper), 8 * kMiB);
  EXPECT_EQ(row_sum_scratch(7984, 768, kHopper), 46'875 * kMiB / 1000);
  EXPECT_EQ(row_sum_scratch(7984, 3072, kHopper), 132 * kMiB);
}

// One block of threads adds few rows by itself, and many columns keep all multiprocessors busy.
TEST(RowSums, KeepNothingWhereOneBlockAddsAllRows) {
  EXPECT_EQ(row_sum_scratch(512, 896, kHopper), 0);
  EXPECT_EQ(row_sum_scratch(0, 896, kHopper), 0);
  EXPECT_EQ(row_sum_scratch(4096, 512 * 1024, kHopper), 0);
}

// Columns that 4 does not divide are read two or one at a time.
TEST(RowSums, DependOnHowColumnsAreRead) {
  EXPECT_GT(row_sum_scratch(8192, 898, kHopper), 0);
  EXPECT_GT(row_sum_scratch(8192, 897, kHopper), 0);
  EXPECT_NE(row_sum_scratch(8192, 897, kHopper), row_sum_scratch(8192, 896, kHopper));
}

}  // namespace
}  // namespace shardplan::tape
