// What is alive at every turn of a step: the memory timeline, in the order of the program.
#pragma once

#include <cstdint>
#include <vector>

#include "program/program.h"
#include "simulator/memory.h"

namespace shardplan {

/// A moment at which live bytes stop growing or stop shrinking, or at which a phase begins or ends.
struct TimelinePoint {
  Phase phase = Phase::forward;
  std::int64_t micro_batch = 0;  ///< counted from 0
  std::int64_t iteration = 0;    ///< of the innermost repetition of layers, counted from 0
  std::int64_t iterations = 0;   ///< of that repetition; 0 outside of any
  std::int64_t total = 0;
  CategoryBytes live{};
};

struct MemoryTimeline {
  std::vector<TimelinePoint> points;  ///< never empty
  std::size_t peak = 0;               ///< index of the first highest point
  std::int64_t micro_batches = 1;     ///< of the step; `points` have those that differ
};

/// Runs every layer, and of repeated micro-batches the first and the last: those between are alike.
/// The highest point is simulate_memory's peak, category by category.
MemoryTimeline memory_timeline(const Program& program);

}  // namespace shardplan
