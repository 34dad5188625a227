// The forward and backward pass of a model under a plan, run and timed once for all plans that
// differ only in how states are kept and exchanged: stage, offload, buckets, number of
// micro-batches.
#pragma once

#include <cstdint>
#include <vector>

#include "lowering/rank_model.h"
#include "timing/rates.h"
#include "timing/timed_kernel.h"

namespace shardplan {

struct Passes {
  RankModel rank;
  std::vector<TimedKernel> timed;  ///< the run's kernels on the plan's GPU
};

Passes run_passes(const Model& model, const Plan& plan, const TimeRates& rates);

/// Plans for the same model and GPU, with the same attention, loss and adapters, have the same
/// passes where their keys are equal. A key is made of the options that are marked so in their
/// tables (OptionInfo::changes_passes), and of what follows from several.
using PassKey = std::vector<std::int64_t>;
PassKey pass_key(const Plan& plan);

}  // namespace shardplan
