#include "serving/answer_lengths.h"

#include <gtest/gtest.h>

#include <cmath>

namespace shardplan {
namespace {

TEST(AnswerLengths, WithoutARestAllAreEquallyLong) {
  const AnswerLengths lengths(512, 0);
  EXPECT_EQ(lengths.running(8, 511), 8);
  EXPECT_EQ(lengths.running(8, 512), 0);
  EXPECT_EQ(lengths.running_between(8, 100, 200), 8);
  EXPECT_EQ(lengths.longest_of(8), 512);
}

// Far from the cut: e^-1 of them are longer than the mean, and the longest of two is half as long
// again as the mean (1 + 1/2).
TEST(AnswerLengths, AreExponentialFarFromTheCut) {
  const AnswerLengths lengths(100, 100'000);
  EXPECT_NEAR(lengths.running(1000, 100), 1000 * std::exp(-1), 0.1);
  EXPECT_NEAR(lengths.longest_of(2), 152, 1);
  EXPECT_NEAR(lengths.longest_of(1000), 100 * 7.485, 1);
}

TEST(AnswerLengths, HaveTheirMeanWhereSomeAreCut) {
  for (const double mean : {100.0, 500.0, 900.0, 1000.0}) {
    const AnswerLengths lengths(mean, 1024);
    // The mean is the sum over tokens of those that still run.
    double sum = 0;
    for (int i = 0; i < 1024; ++i) sum += lengths.running_between(1, i, i + 1);
    EXPECT_NEAR(sum, mean, 0.01 * mean);
    EXPECT_LE(lengths.longest_of(1e6), 1024);
  }
  EXPECT_EQ(AnswerLengths(500, 1024).longest_of(1e6), 1024);
}

}  // namespace
}  // namespace shardplan
