// Step time of a program: what the simulated timeline says, and what users ask of it.
#pragma once

#include "base/source.h"
#include "estimate/passes.h"
#include "plan/plan.h"
#include "program/program.h"
#include "timing/rates.h"
#include "timing/timeline.h"

namespace shardplan {

/// Seconds of one step; the parts of `step_seconds` add up to it.
struct TimeEstimate {
  double step_seconds = 0;     ///< 0: unknown, the GPU has no peak rate for this type
  double compute_seconds = 0;  ///< kernels of the forward and backward pass
  double exposed_communication_seconds = 0;
  double exposed_copy_seconds = 0;  ///< to and from the host and NVMe
  double optimizer_seconds = 0;     ///< clipping and update, on the GPU or the host
  double bubble_seconds = 0;        ///< waiting for other pipeline stages
  double idle_seconds = 0;          ///< the GPU waits for the host to start kernels

  double communication_seconds = 0;   ///< hidden and exposed
  double speed_of_light_seconds = 0;  ///< at datasheet rates, everything hidden
  double tokens_per_second = 0;       ///< of all GPUs
  /// Model FLOPs over time and the dense peak: matrix products and attention, of which causal
  /// attention counts half; nothing that is computed again.
  double mfu = 0;
  double hfu = 0;  ///< the same with recomputation
  Source source = Source::assumed;
};

/// `program` was lowered from `passes`.
TimeEstimate estimate_time(const Program& program, const Plan& plan, const Passes& passes,
                           const TimeRates& rates);

/// FLOPs that the program's kernels compute in one step.
double hardware_flops(const Program& program);

}  // namespace shardplan
