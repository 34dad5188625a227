// The inverse question: the largest (for GPUs the smallest) value with which a job fits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "estimate/estimate.h"

namespace shardplan {

/// `value` surely fits: the upper bound is within the GPU. `probably` fits by the point estimate.
struct LargestResult {
  std::optional<std::int64_t> value;     ///< nullopt: not even the smallest fits
  std::optional<Estimate> at;            ///< the estimate at that value
  std::optional<Estimate> beyond;        ///< the estimate one step further, which does not fit
  bool at_limit = false;                 ///< the search's own limit was reached
  std::optional<std::int64_t> probably;  ///< at least as far as `value`
  std::optional<Estimate> at_probably;
};

using StepLimit = std::optional<double>;  ///< seconds of a step, at most

/// Largest n in [step, limit] for which estimate_of(n) fits, and its step keeps to `most`; needs
/// and times grow with n. `step` is the resolution: values are multiples of it.
LargestResult largest_fitting(std::int64_t step, std::int64_t limit,
                              const std::function<Estimate(std::int64_t)>& estimate_of,
                              StepLimit most = std::nullopt);

LargestResult largest_micro_batch(const Model& model, const Plan& plan,
                                  const Calibration& calibration, StepLimit most = std::nullopt);
LargestResult largest_sequence(const Model& model, const Plan& plan, const Calibration& calibration,
                               StepLimit most = std::nullopt);

/// Largest generic dense decoder, in parameters; `build` makes one of about that size.
LargestResult largest_parameters(const Plan& plan, const Calibration& calibration,
                                 const std::function<Model(std::int64_t)>& build,
                                 StepLimit most = std::nullopt);

/// Fewest GPUs, in multiples that fill nodes of the cluster's size (or divide one).
LargestResult fewest_gpus(const Model& model, const Plan& plan, const Calibration& calibration);

}  // namespace shardplan
