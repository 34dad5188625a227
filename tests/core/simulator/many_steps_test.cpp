// Steps of several programs on one allocator, as iterations of other lengths are.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/units.h"
#include "program/program.h"
#include "simulator/reserved.h"

namespace shardplan {
namespace {

/// A step that makes and frees one block.
Program step_of(std::int64_t bytes) {
  Program program;
  ProgramBuilder b(program);
  b.begin_phase(Phase::forward);
  b.transient(Category::activations, bytes);
  b.end_phase(Phase::forward);
  return program;
}

// The block of a step does not fit into the smaller one that the step before left cached.
TEST(ManySteps, HoldWhatStepsOfOtherSizesLeave) {
  const Program small = step_of(64 * kMiB), large = step_of(96 * kMiB);
  const std::vector<PacedProgram> alone{{&large, {}}};
  const std::array<std::int64_t, 2> limits{100 * kMiB, 90 * kMiB};
  ReservedRuns runs = reserved_runs(alone, {limits.begin(), limits.end()}).front();
  EXPECT_EQ(runs.spare().reserved, 96 * kMiB);
  const std::vector<PacedProgram> both{{&small, {}}, {&large, {}}};
  runs.add_steps(both, std::array<std::size_t, 2>{1, 0}, limits);
  EXPECT_EQ(runs.spare().reserved, 96 * kMiB);  // the large one's block is cut for the small one
  runs.add_steps(both, std::array<std::size_t, 2>{0, 1}, limits);
  EXPECT_EQ(runs.spare().reserved, (64 + 96) * kMiB);
  EXPECT_EQ(runs.most(), (64 + 96) * kMiB);
  const ReservedProfile tight = runs.within(limits[0]);
  EXPECT_FALSE(tight.out_of_memory);  // what is cached goes back to the driver
  EXPECT_EQ(tight.reserved, 96 * kMiB);
  EXPECT_EQ(tight.retries, 1);
  EXPECT_TRUE(runs.within(limits[1]).out_of_memory);
}

}  // namespace
}  // namespace shardplan
