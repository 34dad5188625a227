// The forward and backward pass of a model under a plan, run and timed once for all plans that
// differ only in how states are kept and exchanged: stage, offload, buckets, number of
// micro-batches.
#pragma once

#include <vector>

#include "lowering/segments.h"
#include "timing/rates.h"
#include "timing/timed_kernel.h"

namespace shardplan {

struct Passes {
  ModelRun run;
  std::vector<TimedKernel> timed;  ///< run.kernels on the plan's GPU
};

/// Of `plan`, and of every plan with the same GPU, attention, precision, framework, checkpointing,
/// micro-batch and lengths; under DeepSpeed also with stage 3 or without (lowering/segments.h,
/// Regime).
Passes run_passes(const Model& model, const Plan& plan, const TimeRates& rates);

}  // namespace shardplan
