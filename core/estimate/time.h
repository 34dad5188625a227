// Step time from datasheet rates and documented default efficiencies.
//
// Each unit runs at a fixed share of its datasheet rate; communication hides behind the backward
// pass where the framework overlaps it. No curve is fitted: every figure is marked assumed.
#pragma once

#include <cstdint>

#include "base/source.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

/// Shares of the datasheet rates that ordinary training reaches (docs/time.md gives sources).
struct Efficiencies {
  double matmul = 0.55;
  double memory = 0.70;
  double network = 0.75;
  double host_link = 0.75;
  double launch_seconds = 6e-6;              ///< a kernel of eager PyTorch, at least
  double cpu_adam_elements_per_second = 2e9; ///< of one node, all ranks together
};

struct TimeEstimate {
  double step_seconds = 0;  ///< 0: unknown, the GPU has no peak rate for this type
  double compute_seconds = 0;
  double communication_seconds = 0;  ///< hidden and exposed
  double exposed_communication_seconds = 0;
  double copy_seconds = 0;           ///< exposed copies to and from the host and NVMe
  double cpu_optimizer_seconds = 0;
  double tokens_per_second = 0;      ///< of all GPUs
  double mfu = 0;                    ///< model FLOPs (no recomputation) over dense peak
  double speed_of_light_seconds = 0; ///< at datasheet rates, everything hidden
  Source source = Source::assumed;
};

/// `model_flops` of one step on this rank, without recomputation.
TimeEstimate estimate_time(const Program& program, const Plan& plan, double model_flops,
                           const Efficiencies& efficiencies = {});

}  // namespace shardplan
