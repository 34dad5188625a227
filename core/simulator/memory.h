// Runs a step program for memory: live bytes by category, the peak of every phase and what is
// alive at it. A repetition is run once: its iterations are alike, so the peak over all of them is
// that of the first or the last.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "program/program.h"

namespace shardplan {

using CategoryBytes = std::array<std::int64_t, kCategoryCount>;

struct PhaseBytes {
  std::int64_t peak = 0;
  std::int64_t end = 0;
};

struct MemoryProfile {
  std::array<PhaseBytes, kPhaseCount> phases;  ///< by Phase
  std::vector<Phase> run;                      ///< the phases there are, in their order
  Phase peak_phase = Phase::forward;
  std::int64_t peak = 0;
  CategoryBytes at_peak{};
  CategoryBytes at_start{};  ///< resident in the steady state
  /// Gradients when all of them exist: at the end of the backward pass, or before the reduction
  /// that shrinks them.
  std::int64_t gradients_whole = 0;
  const PhaseBytes& of(Phase p) const { return phases[static_cast<std::size_t>(p)]; }
};

MemoryProfile simulate_memory(const Program& program);

}  // namespace shardplan
