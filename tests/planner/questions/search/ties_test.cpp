// Which of two plans a search takes where time does not tell them apart.
#include <gtest/gtest.h>

#include "questions/search/goal.h"

namespace shardplan::ties_test {
namespace {

Score score(std::int64_t time, std::int64_t memory, std::int64_t off_gpu, bool unknown = false) {
  return {.time = time, .memory = memory, .gpus = 8, .off_gpu = off_gpu, .unknown_host = unknown};
}

TEST(Ties, GoToThePlanWithItsStatesOnTheGpu) {
  const std::vector<Score> ties{score(-1000, 10, 1), score(-1000, 12, 0), score(-995, 9, 0)};
  EXPECT_EQ(simplest_of_ties(Objective::throughput, ties), 1U);
  EXPECT_EQ(simplest_of_ties(Objective::cost, ties), 1U);
  EXPECT_EQ(simplest_of_ties(Objective::memory, ties), 0U);
}

TEST(Ties, AreWithinTheTimeModelsErrorAndNoMore) {
  // steps of half a per cent: 9 are 4.6 %, 20 are 10 %
  EXPECT_EQ(simplest_of_ties(Objective::throughput, {score(-1000, 10, 1), score(-991, 12, 0)}), 1U);
  EXPECT_EQ(simplest_of_ties(Objective::throughput, {score(-1000, 10, 1), score(-980, 12, 0)}), 0U);
  EXPECT_EQ(simplest_of_ties(Objective::throughput, {}), 0U);
}

TEST(Ties, APlanOffTheGpuHidesNoneThatIsOnIt) {
  EXPECT_FALSE(dominates(score(-1000, 10, 1), 0, score(-1000, 12, 0), 1));
  EXPECT_TRUE(dominates(score(-1000, 10, 0), 1, score(-1000, 10, 1), 0));
}

TEST(Ties, AHostThatNobodyKnowsComesLast) {
  EXPECT_FALSE(better(Objective::throughput, score(-1000, 10, 1, true), 0, score(-500, 60, 0), 1));
  EXPECT_FALSE(dominates(score(-1000, 10, 1, true), 0, score(-500, 60, 1), 1));
}

}  // namespace
}  // namespace shardplan::ties_test
