// The same model served by engines of other sizes: how the GPUs are shared out among engines, and
// what each way gives.
#pragma once

#include <optional>
#include <vector>

#include "estimate/estimate.h"
#include "load/job.h"
#include "questions/cost.h"
#include "questions/search/goal.h"

namespace shardplan {

/// Degrees in powers of two that divide the model's heads and the GPUs of a node.
std::vector<std::int64_t> serving_degrees(const Model& model, const Plan& plan);

struct ServingChoice {
  std::int64_t tensor_parallel = 1;  ///< GPUs of one engine
  Estimate estimate;
  std::optional<double> dollars_per_million;  ///< new tokens, on demand; none without a price
  bool asked = false;                         ///< the job's own
};

/// Every such degree, the job's own among them. `job` has an engine.
std::vector<ServingChoice> serving_choices(const Job& job, const Calibration& calibration,
                                           const CostTerms& terms);

/// Of those that fit the one with the most tokens per second of all GPUs, the fewest GPUs an engine
/// where times are alike or not known; where none fits, the most GPUs an engine.
const ServingChoice& best_choice(const std::vector<ServingChoice>& all);

/// How many GPUs serve best, where `written` does not say how many an engine is over and the
/// engine's own default is another number. Nothing for a job without an engine.
std::optional<std::int64_t> degree_left_open(const Json& written, const Job& job,
                                             const Calibration& calibration);

/// What a search among degrees is for, and what limits it.
struct ServingGoal {
  Objective objective = Objective::cost;
  std::vector<std::int64_t> degrees;          ///< empty: all that divide model and node
  std::optional<double> token_seconds;        ///< from one token of a sequence to its next
  std::optional<double> dollars_per_million;  ///< new tokens
  CostTerms terms;
};

/// Those that fit and keep to the limits, best first; with a limit of token_seconds as many
/// sequences as keep to it. The first is marked as asked. `job` has an engine.
std::vector<ServingChoice> search_serving(const Job& job, const Calibration& calibration,
                                          const ServingGoal& goal);

/// Of a million new tokens at `tokens_per_second`; none where either is not known.
std::optional<double> dollars_per_million(const Plan& plan, double tokens_per_second,
                                          const CostTerms& terms);

}  // namespace shardplan
