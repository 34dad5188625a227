// What a plan costs: GPU hours, money where a price is known, energy where the power of the GPU is.
#pragma once

#include <optional>

#include "estimate/estimate.h"
#include "plan/plan.h"

namespace shardplan {

/// What a question says beside the job. Money is in the currency of the price.
struct CostTerms {
  std::optional<double> price_per_gpu_hour;  ///< before the cluster's own price of a node
  std::optional<double> tokens;              ///< of the whole training
};

/// Nothing is filled in where the step time is unknown.
struct Cost {
  std::optional<double>
      price_per_hour;           ///< of all GPUs of the plan; a part of a node pays it whole
  std::optional<double> watts;  ///< all GPUs at their board power: an upper estimate
  double seconds_per_billion_tokens = 0;
  double gpu_hours_per_billion_tokens = 0;
  std::optional<double> money_per_step, money_per_billion_tokens;
  std::optional<double> joules_per_step, kwh_per_billion_tokens;
  // Of CostTerms::tokens.
  std::optional<double> tokens, days, money, kwh;
};

Cost cost_of(const Plan& plan, double step_seconds, const CostTerms& terms);
Cost cost_of(const Plan& plan, const Estimate& estimate, const CostTerms& terms);

/// Tokens that all GPUs together take in one optimizer step.
double tokens_per_step(const Plan& plan);

}  // namespace shardplan
