// Intervals between checkpoints and goodput: the closed forms against a run that is played out.
#include "questions/upkeep.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "support/plan_testing.h"

namespace shardplan::upkeep_test {
namespace {

TEST(Upkeep, YoungAndDalyAgreeWhereSavingIsShort) {
  EXPECT_DOUBLE_EQ(young_interval(60, 3'000'000), std::sqrt(2 * 60 * 3e6));
  EXPECT_NEAR(daly_interval(1, 1e8) / young_interval(1, 1e8), 1, 1e-4);
  EXPECT_LT(daly_interval(3600, 36'000), young_interval(3600, 36'000));
  EXPECT_EQ(daly_interval(100, 40), 40);  // saving takes longer than twice the time to a failure
}

/// Seconds of a run with failures at random until so many seconds of training are saved.
double played_out(double work, double interval, double save, double restart, double failure) {
  std::mt19937_64 random(17);
  std::exponential_distribution<double> until(1 / failure);
  double clock = 0, done = 0, left = until(random);
  const auto survives = [&](double seconds) {
    if (seconds <= left) {
      clock += seconds;
      left -= seconds;
      return true;
    }
    clock += left;
    left = until(random);
    return false;
  };
  while (done < work) {
    if (survives(interval + save)) {
      done += interval;
      continue;
    }
    while (!survives(restart)) {
    }
  }
  return clock;
}

TEST(Upkeep, GoodputIsThatOfARunPlayedOut) {
  for (const auto& [save, restart, failure] :
       {std::tuple(30.0, 600.0, 10'000.0), std::tuple(300.0, 900.0, 20'000.0)}) {
    const double interval = daly_interval(save, failure);
    const double work = 3e7;
    EXPECT_NEAR(goodput_of(interval, save, restart, failure),
                work / played_out(work, interval, save, restart, failure), 0.01);
  }
}

TEST(Upkeep, DalysIntervalIsTheBestOne) {
  const double save = 120, restart = 900, failure = 15'000;
  const double best = daly_interval(save, failure);
  const double goodput = goodput_of(best, save, restart, failure);
  for (const double factor : {0.5, 0.8, 1.25, 2.0})
    EXPECT_GT(goodput, goodput_of(best * factor, save, restart, failure)) << factor;
}

/// The paper's own: over 90 % of the time trained (arXiv:2407.21783, section 3.3.4).
TEST(Upkeep, SixteenThousandGpusTrainNineTenthsOfTheTime) {
  const double node_hours = 16'384.0 * 54 * 24 / 466 / 8;
  const double failure = node_hours * 3600 / 2048;
  EXPECT_NEAR(failure / 3600, 2.78, 0.01);
  const double save = 405e9 * 14 / 2048 / 0.977e9;
  EXPECT_NEAR(goodput_of(daly_interval(save, failure), save, 600 + save, failure), 0.92, 0.02);
}

TEST(Upkeep, FollowsFromTheClustersStorageAndNodes) {
  Plan plan = plan_of(FrameworkKind::fsdp2, "bf16-autocast", 16);
  const Model model = equal_tensors(4, 1 << 18);
  EXPECT_FALSE(upkeep_of(model, plan));  // nothing is known of storage and failures
  plan.cluster.checkpoint_storage = CheckpointStorage{2e6, 1e6, "test", Source::measured};
  plan.cluster.failures = Failures{100, 60};
  const auto upkeep = upkeep_of(model, plan);
  ASSERT_TRUE(upkeep);
  EXPECT_DOUBLE_EQ(upkeep->save_seconds, 6 * 1.048576);  // half of 12 bytes a parameter
  EXPECT_DOUBLE_EQ(upkeep->load_seconds, 3 * 1.048576);
  EXPECT_DOUBLE_EQ(upkeep->failure_seconds, 50 * 3600);  // either of two nodes
  EXPECT_GT(upkeep->goodput, 0.98);
  EXPECT_LT(upkeep->goodput, 1);
  plan.workload.kind = WorkKind::inference;
  EXPECT_FALSE(upkeep_of(model, plan));
}

}  // namespace
}  // namespace shardplan::upkeep_test
