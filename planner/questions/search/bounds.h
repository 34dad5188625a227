// What all plans below a choice of the first axes need at least.
#pragma once

#include <cstdint>
#include <optional>

#include "estimate/bounds.h"
#include "estimate/estimate.h"
#include "questions/search/space.h"

namespace shardplan {

/// Decided by the first SearchSpace::states_fixed axes.
struct StatesBound {
  std::int64_t parameter_bytes = 0;  ///< that stay on a GPU between steps
  std::int64_t resident_bytes = 0;   ///< all that stays there
  std::int64_t overhead_bytes = 0;   ///< CUDA context and NCCL
  Fit host = Fit::unknown, nvme = Fit::unknown;
  std::int64_t off_gpu_excess = 0;  ///< bytes that host and NVMe of a node lack
  double optimizer_seconds = 0;     ///< of a step
};

/// `plan` has these axes set. The estimate of one member, the one that keeps least, holds for all.
StatesBound states_bound(const Model& model, const SearchSpace& space, Plan plan,
                         const Calibration& calibration);

/// Decided by the first SearchSpace::work_fixed axes; admissible, as a test shows on every plan of
/// small spaces: frameworks allocate on top of the passes and of what stays, and compute and
/// update one after the other.
struct WorkBound {
  std::int64_t allocated_bytes = 0;
  double step_seconds = 0;  ///< 0: unknown
};
WorkBound work_bound(const Plan& plan, const Passes& passes, const StatesBound& states,
                     const Calibration& calibration);

}  // namespace shardplan
