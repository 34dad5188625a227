// Memory of one GPU beside live tensors: what the process has of it, what the allocator reserves,
// and both by category.
#pragma once

#include <cstdint>
#include <vector>

#include "base/source.h"
#include "estimate/calibration.h"
#include "estimate/verdict.h"
#include "program/program.h"
#include "simulator/memory.h"

namespace shardplan {

class ReservedRuns;

/// Bytes that one rank's process has of its GPU beside the allocator's memory.
struct ProcessMemory {
  std::int64_t contexts = 0, nccl = 0;
  std::int64_t upper = 0;  ///< of both
  std::int64_t point() const { return contexts + nccl; }
};

ProcessMemory process_memory(const Plan& plan, const Calibration& calibration,
                             const Program& program);

/// How far runs of such a job may pass what is estimated.
Margin margin_of(const Plan& plan, const Calibration& calibration, const Program& program);

/// Bytes that the allocator reserves while `program` runs. `allocated`: its live bytes at the peak.
/// `runs`: the program on the caching allocator (allocator_runs); nullptr: by a calibrated ratio.
Range reserved_memory(const Plan& plan, const Calibration& calibration, const Program& program,
                      const ProcessMemory& process, std::int64_t allocated,
                      const ReservedRuns* runs);

struct CategoryLine {
  Category category = Category::other;
  std::int64_t resident = 0;  ///< between steps; gradients: once all of them exist
  std::int64_t at_peak = 0;
  Source source = Source::modelled;
};

/// Where the constants of a breakdown come from.
struct BreakdownSources {
  Source process = Source::calibrated;  ///< contexts and NCCL
  Source fragmentation = Source::modelled;
  Source optimizer = Source::modelled;  ///< its states
  Source tensors = Source::modelled;    ///< parameters, masters, gradients and caches
};

/// All categories, in their order. `fragmentation`: reserved bytes that no tensor has.
std::vector<CategoryLine> breakdown_of(const MemoryProfile& memory, const ProcessMemory& process,
                                       std::int64_t fragmentation, const BreakdownSources& sources);

}  // namespace shardplan
