// Runs a step program on the caching allocator, from the built model to the steady state, every
// layer and every block: what a process holds of the GPU, and whether it runs out.
#pragma once

#include <array>
#include <cstdint>

#include "program/program.h"
#include "simulator/caching_allocator.h"
#include "simulator/memory.h"

namespace shardplan {

struct ReservedProfile {
  std::int64_t reserved = 0;                   ///< the most that was held
  std::int64_t allocated = 0;                  ///< the most that was in blocks
  std::int64_t requested = 0;                  ///< the most that was asked for: blocks round up
  std::array<PhaseBytes, kPhaseCount> phases;  ///< of the last step, in blocks
  std::int64_t retries = 0;                    ///< times that cached segments had to be given back
  std::int64_t steps = 0;                      ///< until the steady state, or until memory ran out
  bool out_of_memory = false;
};

ReservedProfile simulate_reserved(const Program& program, const AllocatorOptions& options = {});

}  // namespace shardplan
