// The forward and backward pass of a model under a plan, run and timed once for all plans that
// differ only in how states are kept and exchanged: stage, offload, buckets, number of
// micro-batches.
#pragma once

#include <vector>

#include "lowering/rank_model.h"
#include "timing/rates.h"
#include "timing/timed_kernel.h"

namespace shardplan {

struct Passes {
  RankModel rank;
  std::vector<TimedKernel> timed;  ///< the run's kernels on the plan's GPU
};

/// Of `plan`, and of every plan with the same GPU, attention, precision, framework, checkpointing,
/// micro-batch, lengths and degrees of
/// parallelism; under DeepSpeed also with stage 3 or without (lowering/segments.h,
/// Regime).
Passes run_passes(const Model& model, const Plan& plan, const TimeRates& rates);

}  // namespace shardplan
