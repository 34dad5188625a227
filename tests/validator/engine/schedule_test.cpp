#include "engine/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace shardplan::validator {
namespace {

double lr(const Schedule& s, std::int64_t taken) {
  return rate_of(s, taken).learning_rate;
}

TEST(WarmupLr, rises_logarithmically_by_default_and_stays) {
  const WarmupLr s{{.smallest = 1e-5, .largest = 1e-3, .steps = 100}};
  EXPECT_DOUBLE_EQ(lr(s, 0), 1e-5);
  EXPECT_DOUBLE_EQ(lr(s, 1), 1e-5);
  EXPECT_NEAR(lr(s, 10), 1e-5 + (1e-3 - 1e-5) * std::log(10.0) / std::log(100.0), 1e-15);
  EXPECT_NEAR(lr(s, 100), 1e-3, 1e-15);
  EXPECT_DOUBLE_EQ(lr(s, 5000), 1e-3);
}

TEST(WarmupLr, rises_in_equal_steps_when_linear) {
  const WarmupLr s{{.smallest = 0, .largest = 1, .steps = 4, .logarithmic = false}};
  const double expected[] = {0, 0, 0.25, 0.5, 0.75, 1, 1};
  for (int i = 0; i < 7; ++i) EXPECT_DOUBLE_EQ(lr(s, i), expected[i]) << i;
}

TEST(WarmupDecayLr, falls_to_nothing_at_the_last_step) {
  const WarmupDecayLr s{{.smallest = 0, .largest = 1, .steps = 4, .logarithmic = false}, 12};
  EXPECT_DOUBLE_EQ(lr(s, 5), 1);    // (12 − 4) / 8
  EXPECT_DOUBLE_EQ(lr(s, 9), 0.5);  // (12 − 8) / 8
  EXPECT_DOUBLE_EQ(lr(s, 13), 0);
  EXPECT_DOUBLE_EQ(lr(s, 100), 0);
}

TEST(OneCycleLr, rises_falls_and_decays_while_momentum_goes_the_other_way) {
  OneCycleLr s{.smallest = 0.1, .largest = 1.1, .first_steps = 4, .second_steps = 2};
  s.decay_rate = 0.5;
  s.decay_steps = 2;
  const double expected[] = {0.1, 0.35, 0.6, 0.85, 1.1, 0.6, 0.1};
  for (int i = 0; i < 7; ++i) EXPECT_NEAR(lr(s, i), expected[i], 1e-12) << i;
  EXPECT_NEAR(lr(s, 7), 0.1 / (1 + 0.5 * 0.5), 1e-12);
  EXPECT_NEAR(rate_of(s, 4).momentum->beta1, 0.8, 1e-12);
  EXPECT_NEAR(rate_of(s, 2).momentum->beta1, 0.85, 1e-12);
  EXPECT_NEAR(rate_of(s, 9).momentum->beta1, 0.9, 1e-12);
  s.first_stairs = s.second_stairs = 2;
  EXPECT_NEAR(lr(s, 1), 0.1, 1e-12);
  EXPECT_NEAR(lr(s, 3), 0.6, 1e-12);
}

TEST(LrRangeTest, grows_evenly_or_in_stairs) {
  LrRangeTest s{.smallest = 1e-3, .step_size = 10, .step_rate = 2};
  EXPECT_DOUBLE_EQ(lr(s, 0), 1e-3);
  EXPECT_DOUBLE_EQ(lr(s, 5), 2e-3);
  s.staircase = true;
  EXPECT_DOUBLE_EQ(lr(s, 9), 1e-3);
  EXPECT_DOUBLE_EQ(lr(s, 10), 3e-3);
}

}  // namespace
}  // namespace shardplan::validator
