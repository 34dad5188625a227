// What a plan costs: GPU hours, money where a price is known, energy where the power of the GPU is.
#pragma once

#include <optional>

#include "estimate/estimate.h"
#include "plan/plan.h"
#include "questions/upkeep.h"

namespace shardplan {

/// What a question says beside the job.
struct CostTerms {
  std::optional<double> price_per_gpu_hour;  ///< before the cluster's own price of a node
};

/// On demand, and where the machines may be taken away. In the currency of the price that the job
/// says; list prices are US dollars.
struct Money {
  std::optional<double> on_demand, spot;
};
Money operator*(const Money& money, double times);

/// Nothing is filled in where the step time is unknown.
struct Cost {
  Money per_hour;                 ///< of all GPUs of the plan; a part of a node pays it whole
  std::optional<ListPrice> list;  ///< where the price is from, unless the question or the job says
  std::optional<double> watts;    ///< all GPUs at their board power: an upper estimate
  double seconds_per_billion_tokens = 0;
  double gpu_hours_per_billion_tokens = 0;
  Money per_step, per_billion_tokens;
  std::optional<double> joules_per_step, kwh_per_billion_tokens;
  // Of Workload::tokens.
  std::optional<double> tokens, days, gpu_hours, kwh;
  Money whole;
  std::optional<Upkeep> upkeep;  ///< where tokens are asked for: what failures and saving take
};

Cost cost_of(const Plan& plan, double step_seconds, const CostTerms& terms);
/// With what keeps such a run from training all the time.
Cost cost_of(const Model& model, const Plan& plan, const Estimate& estimate,
             const CostTerms& terms);

/// Tokens that all GPUs together train on in one step, or in an iteration of several models.
double tokens_per_step(const Plan& plan);

}  // namespace shardplan
