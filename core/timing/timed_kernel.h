// A kernel with its time: what the rows of a program's table (program/program.h) cost wherever
// events name them.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "plan/plan.h"
#include "timing/kernel_time.h"

namespace shardplan {

/// What kernels in a row do to the clocks (timeline.h).
struct KernelSequence {
  static constexpr double kNever = -std::numeric_limits<double>::infinity();
  double issue = 0;
  double busy = 0;
  double chain = kNever;

  void then(const KernelSequence& next) {
    chain = std::max(chain + next.busy, issue + next.chain);
    issue += next.issue;
    busy += next.busy;
  }
  bool operator==(const KernelSequence&) const = default;
};

struct TimedKernel {
  KernelSequence sequence;
  double ideal = 0;  ///< seconds at datasheet rates
  double flops = 0;
};

/// Times `kernels` of `plan`'s step behind those that `timed` has already.
void time_kernels(std::span<const Kernel> kernels, const Plan& plan, const TimeRates& rates,
                  std::vector<TimedKernel>& timed);

}  // namespace shardplan
