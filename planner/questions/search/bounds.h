// What all plans below a choice of the first axes need at least.
#pragma once

#include <cstdint>
#include <vector>

#include "estimate/bounds.h"
#include "estimate/estimate.h"
#include "questions/search/space.h"

namespace shardplan {

/// Decided by the first SearchSpace::states_fixed axes.
struct StatesBound {
  struct Rank {
    std::int64_t resident_bytes = 0;  ///< all that stays on its GPU between steps
    double optimizer_seconds = 0;     ///< of a step
  };
  /// Of a rank of each pipeline stage that may be the worst; without stages of one for all.
  std::vector<Rank> ranks;
  std::int64_t parameter_bytes = 0;  ///< that stay on a GPU between steps
  std::int64_t resident_bytes = 0;   ///< all that stays there
  std::int64_t overhead_bytes = 0;   ///< CUDA contexts and NCCL, of the rank with the least
  Fit host = Fit::unknown, nvme = Fit::unknown;
  std::int64_t off_gpu_excess = 0;  ///< bytes that host and NVMe of a node lack
};

/// The member below `plan`, which has these axes set, that keeps least: its bound holds for all.
Plan lightest_member(const SearchSpace& space, Plan plan);

/// What a GPU has beside the allocator's memory: CUDA contexts and NCCL.
std::int64_t overhead_of(const Estimate& e);

/// `passes` are those of the lightest member, `plan`.
StatesBound states_bound(const Model& model, const Plan& plan, const Passes& passes,
                         const Calibration& calibration);

/// Decided by the first SearchSpace::work_fixed axes; admissible, as a test shows on every plan of
/// small spaces: frameworks allocate on top of the passes and of what stays, and compute and
/// update one after the other.
struct WorkBound {
  std::int64_t allocated_bytes = 0;
  double step_seconds = 0;  ///< 0: unknown
};
WorkBound work_bound(const std::vector<LeastWork>& ranks, const StatesBound& states);

/// Of tensors alone, whether the allocator was simulated or not: without rests of blocks.
std::int64_t live_peak(const Estimate& e);

}  // namespace shardplan
