// The memory simulator against full unrolling, and programs written by hand.
#include <gtest/gtest.h>

#include <random>

#include "base/checked.h"
#include "support/program_testing.h"

namespace shardplan {
namespace {

TEST(SimulateMemory, FindsThePeakAndWhatIsAliveAtIt) {
  Program program;
  ProgramBuilder b(program);
  b.resident(Category::parameters, 100);
  b.begin_phase(Phase::forward);
  b.alloc(Category::activations, 30);
  b.transient(Category::workspace, 50);
  b.end_phase(Phase::forward);
  b.begin_phase(Phase::backward);
  b.alloc(Category::gradients, 100);
  b.free(Category::activations, 30);
  b.end_phase(Phase::backward);
  b.begin_phase(Phase::step);
  b.free(Category::gradients, 100);
  b.end_phase(Phase::step);
  const MemoryProfile m = simulate_memory(program);
  EXPECT_EQ(m.peak, 230);
  EXPECT_EQ(m.peak_phase, Phase::backward);
  EXPECT_EQ(m.at_peak[index_of(Category::activations)], 30);
  EXPECT_EQ(m.at_peak[index_of(Category::gradients)], 100);
  EXPECT_EQ(m.of(Phase::forward).peak, 180);
  EXPECT_EQ(m.of(Phase::forward).end, 130);
  EXPECT_EQ(m.of(Phase::backward).end, 200);
  EXPECT_EQ(m.of(Phase::step).peak, 200);
  EXPECT_EQ(m.of(Phase::step).end, 100);
  EXPECT_EQ(m.gradients_whole, 100);
}

TEST(SimulateMemory, AShrinkingRepetitionPeaksInItsFirstIteration) {
  Program program;
  ProgramBuilder b(program);
  b.resident(Category::activations, 1000);
  b.begin_phase(Phase::backward);
  b.begin_repeat(10);
  b.transient(Category::workspace, 7);
  b.free(Category::activations, 100);
  b.end_repeat();
  b.end_phase(Phase::backward);
  const MemoryProfile m = simulate_memory(program);
  EXPECT_EQ(m.peak, 1007);
  EXPECT_EQ(m.of(Phase::backward).end, 0);
}

TEST(SimulateMemory, AGrowingRepetitionPeaksInItsLastIteration) {
  Program program;
  ProgramBuilder b(program);
  b.begin_phase(Phase::forward);
  b.begin_repeat(10);
  b.alloc(Category::activations, 100);
  b.transient(Category::workspace, 7);
  b.end_repeat();
  b.end_phase(Phase::forward);
  EXPECT_EQ(simulate_memory(program).peak, 1007);
}

TEST(SimulateMemory, ARepetitionOfNothingDoesNothing) {
  Program program;
  ProgramBuilder b(program);
  b.begin_phase(Phase::forward);
  b.begin_repeat(0);
  b.alloc(Category::activations, 100);
  b.end_repeat();
  b.end_phase(Phase::forward);
  EXPECT_EQ(simulate_memory(program).peak, 0);
}

TEST(SimulateMemory, KeepsThePeakOfAnEarlierMicroBatch) {
  Program program;
  ProgramBuilder b(program);
  for (const std::int64_t bytes : {500, 20}) {
    b.begin_phase(Phase::forward);
    b.transient(Category::activations, bytes);
    b.end_phase(Phase::forward);
  }
  EXPECT_EQ(simulate_memory(program).of(Phase::forward).peak, 500);
}

TEST(SimulateMemory, ThrowsWhenBytesDoNotFitIn64Bits) {
  Program program;
  ProgramBuilder b(program);
  b.begin_phase(Phase::forward);
  b.begin_repeat(std::int64_t{1} << 40);
  b.alloc(Category::activations, std::int64_t{1} << 40);
  b.end_repeat();
  EXPECT_THROW(simulate_memory(program), OverflowError);
}

/// Random programs, with repetitions up to three deep.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint32_t seed) : random_(seed), b_(program_) {}

  Program make() {
    for (int i = 0; i < 3; ++i) b_.resident(category(), below(1000));
    for (int micro = 0; micro < 1 + static_cast<int>(below(3)); ++micro) {
      for (const Phase phase : {Phase::forward, Phase::backward}) {
        b_.begin_phase(phase);
        body(0);
        b_.end_phase(phase);
      }
    }
    b_.begin_phase(Phase::step);
    body(0);
    b_.end_phase(Phase::step);
    return program_;
  }

 private:
  std::int64_t below(std::int64_t n) {
    return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random_);
  }
  Category category() { return static_cast<Category>(below(kCategoryCount)); }

  void body(int depth) {
    const std::int64_t events = 1 + below(8);
    for (std::int64_t i = 0; i < events; ++i) {
      switch (below(depth < 3 ? 6 : 4)) {
        case 0:
        case 1:
          b_.alloc(category(), 1 + below(1000));
          break;
        case 2:
          b_.free(category(), 1 + below(1000));
          break;
        case 3:
          b_.transient(category(), 1 + below(1000));
          break;
        case 4:
          b_.gradients_whole();
          break;
        default:
          b_.begin_repeat(below(6));
          body(depth + 1);
          b_.end_repeat();
      }
    }
  }

  std::mt19937 random_;
  Program program_;
  ProgramBuilder b_;
};

TEST(SimulateMemory, RepetitionsAreAsGoodAsUnrolling) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    const Program program = RandomProgram(seed).make();
    const MemoryProfile fast = simulate_memory(program);
    const MemoryProfile slow = play(program).profile;
    ASSERT_EQ(fast.peak, slow.peak) << seed;
    ASSERT_EQ(fast.peak_phase, slow.peak_phase) << seed;
    ASSERT_EQ(fast.at_peak, slow.at_peak) << seed;
    ASSERT_EQ(fast.at_start, slow.at_start) << seed;
    ASSERT_EQ(fast.gradients_whole, slow.gradients_whole) << seed;
    for (std::size_t p = 0; p < 3; ++p) {
      ASSERT_EQ(fast.phases[p].peak, slow.phases[p].peak) << seed;
      ASSERT_EQ(fast.phases[p].end, slow.phases[p].end) << seed;
    }
  }
}

}  // namespace
}  // namespace shardplan
