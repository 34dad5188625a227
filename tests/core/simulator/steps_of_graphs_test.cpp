// What recording and replaying CUDA graphs asks of the allocator's simulation: a pool that stays,
// and blocks that are there from a later step on.
#include <gtest/gtest.h>

#include "base/units.h"
#include "program/program.h"
#include "simulator/caching_allocator.h"
#include "simulator/reserved.h"

namespace shardplan {
namespace {

TEST(StepsOfGraphs, KeepsThePoolOfGraphsWhenItsCacheIsEmptied) {
  CachingAllocator allocator{AllocatorOptions{}};
  allocator.free(allocator.allocate(64 * kMiB));
  allocator.free(allocator.allocate(32 * kMiB, Stream::graphs));
  allocator.empty_cache();
  EXPECT_EQ(allocator.reserved(), 32 * kMiB);
}

TEST(StepsOfGraphs, BeginsWithABlockWhereItIsFirstThere) {
  Program program;
  ProgramBuilder b(program);
  b.begin_phase(Phase::forward);
  b.alloc_named(Category::activations, 64 * kMiB, 0);
  b.from_step(3);
  b.free_named(Category::activations, 64 * kMiB, 0);
  b.from_step(3);
  b.end_phase(Phase::forward);
  // The second step needs what the third one makes no use of.
  const Event other{.category = Category::workspace, .bytes = 32 * kMiB};
  Event gone = other;
  gone.kind = Event::Kind::free;
  b.once(2, {other, gone});
  EXPECT_EQ(simulate_reserved(program).reserved, (32 + 64) * kMiB);
}

}  // namespace
}  // namespace shardplan
