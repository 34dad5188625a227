#include "engine/loss_scaler.h"

#include <gtest/gtest.h>

#include "engine/diverged.h"

namespace shardplan::validator {
namespace {

TEST(LossScaler, takes_two_overflows_to_halve_the_scale_at_first) {
  LossScaler s({});
  s.update(true);
  EXPECT_EQ(s.scale(), 65536);
  s.update(true);
  EXPECT_EQ(s.scale(), 32768);
  s.update(true);  // patience comes back with the next rise only
  EXPECT_EQ(s.scale(), 16384);
}

TEST(LossScaler, doubles_the_scale_after_a_window_without_overflow) {
  LossScaler s({.initial = 8, .window = 4, .hysteresis = 1});
  s.update(true);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(s.scale(), 4) << i;
    s.update(false);
  }
  s.update(false);
  EXPECT_EQ(s.scale(), 8);
}

TEST(LossScaler, gives_up_when_the_smallest_scale_overflows) {
  LossScaler s({.initial = 2, .smallest = 1, .hysteresis = 1});
  s.update(true);
  EXPECT_THROW(s.update(true), Diverged);
}

}  // namespace
}  // namespace shardplan::validator
