#include "questions/serving.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "parallel/degrees.h"

namespace shardplan {
namespace {

bool divides(std::int64_t degree, const Model& model, const Plan& plan) {
  const Cluster& cluster = plan.cluster;
  const std::int64_t heads = model.facts.attention_heads;
  if (cluster.world() % degree != 0 || degree > cluster.gpus_per_node) return false;
  if (heads > 0 && heads % degree != 0) return false;
  Plan divided = plan;
  divided.parallel.tensor = degree;
  return !degree_problem(model, divided);
}

bool serves_better(const ServingChoice& a, const ServingChoice& b) {
  if (a.estimate.verdict.fits != b.estimate.verdict.fits) return a.estimate.verdict.fits;
  if (!a.estimate.verdict.fits) return a.tensor_parallel > b.tensor_parallel;
  const double one = a.estimate.serving->tokens_per_second;
  const double other = b.estimate.serving->tokens_per_second;
  return one != other ? one > other : a.tensor_parallel < b.tensor_parallel;
}

}  // namespace

std::vector<std::int64_t> serving_degrees(const Model& model, const Plan& plan) {
  std::vector<std::int64_t> all;
  for (std::int64_t degree = 1; degree <= plan.cluster.gpus_per_node; degree *= 2)
    if (divides(degree, model, plan)) all.push_back(degree);
  return all;
}

const ServingChoice& best_choice(const std::vector<ServingChoice>& all) {
  return *std::ranges::min_element(all, serves_better);
}

std::optional<double> dollars_per_million(const Plan& plan, double tokens_per_second,
                                          const CostTerms& terms) {
  if (tokens_per_second <= 0) return std::nullopt;
  constexpr double kHour = 3600, kMillion = 1e6;
  const Money hour = cost_of(plan, 1, terms).per_hour;
  if (!hour.on_demand) return std::nullopt;
  return *hour.on_demand / kHour / tokens_per_second * kMillion;
}

namespace {

ServingChoice choice_of(const Job& job, Plan plan, std::int64_t degree,
                        const Calibration& calibration, const CostTerms& terms) {
  RolloutEngine& engine = *plan.workload.generation.engine;
  engine.tensor_parallel = degree;
  if (engine.expert_parallel > 1) engine.expert_parallel = degree;
  ServingChoice choice{degree, estimate(job.model, plan, calibration), std::nullopt, false};
  choice.dollars_per_million =
      dollars_per_million(plan, choice.estimate.serving->tokens_per_second, terms);
  return choice;
}

bool keeps_to(const ServingChoice& choice, std::optional<double> token_seconds) {
  return !token_seconds || choice.estimate.serving->token_seconds <= *token_seconds;
}

/// With as many sequences as are answered in time: a pass takes longer with each.
ServingChoice in_time(const Job& job, std::int64_t degree, const Calibration& calibration,
                      const ServingGoal& goal) {
  ServingChoice all = choice_of(job, job.plan, degree, calibration, goal.terms);
  if (keeps_to(all, goal.token_seconds)) return all;
  std::int64_t good = 0, bad = all.estimate.serving->sequences;
  Plan plan = job.plan;
  ServingChoice best = all;
  while (bad - good > 1) {
    plan.workload.micro_batch = good + (bad - good) / 2;
    ServingChoice fewer = choice_of(job, plan, degree, calibration, goal.terms);
    const bool keeps = keeps_to(fewer, goal.token_seconds);
    (keeps ? good : bad) = plan.workload.micro_batch;
    if (keeps) best = std::move(fewer);
  }
  return best;
}

/// Smaller is better.
double measure(const ServingChoice& choice, Objective objective) {
  switch (objective) {
    case Objective::throughput:
      return -choice.estimate.serving->tokens_per_second;
    case Objective::cost:
      return *choice.dollars_per_million;
    case Objective::gpus:
      return static_cast<double>(choice.tensor_parallel);
    case Objective::memory:
      return static_cast<double>(choice.estimate.device.point);
  }
  return 0;
}

}  // namespace

std::vector<ServingChoice> search_serving(const Job& job, const Calibration& calibration,
                                          const ServingGoal& goal) {
  std::vector<ServingChoice> found;
  for (const std::int64_t degree : serving_degrees(job.model, job.plan)) {
    if (!goal.degrees.empty() && std::ranges::find(goal.degrees, degree) == goal.degrees.end())
      continue;
    ServingChoice choice = in_time(job, degree, calibration, goal);
    const auto& price = choice.dollars_per_million;
    const bool too_dear =
        goal.dollars_per_million && (!price || *price > *goal.dollars_per_million);
    const bool unpriced = goal.objective == Objective::cost && !price;
    if (choice.estimate.verdict.fits && keeps_to(choice, goal.token_seconds) && !too_dear &&
        !unpriced)
      found.push_back(std::move(choice));
  }
  std::ranges::stable_sort(
      found, {}, [&](const ServingChoice& choice) { return measure(choice, goal.objective); });
  if (!found.empty()) found.front().asked = true;
  return found;
}

std::vector<ServingChoice> serving_choices(const Job& job, const Calibration& calibration,
                                           const CostTerms& terms) {
  std::vector<ServingChoice> all;
  for (const std::int64_t degree : serving_degrees(job.model, job.plan)) {
    all.push_back(choice_of(job, job.plan, degree, calibration, terms));
    all.back().asked = degree == job.plan.workload.generation.engine->tensor_parallel;
  }
  return all;
}

std::optional<std::int64_t> degree_left_open(const Json& written, const Job& job,
                                             const Calibration& calibration) {
  const auto& engine = job.plan.workload.generation.engine;
  const Json::json_pointer said("/workload/engine/tensor_parallel");
  if (!engine || written.contains(said)) return std::nullopt;
  const std::int64_t best =
      best_choice(serving_choices(job, calibration, CostTerms{})).tensor_parallel;
  return best == engine->tensor_parallel ? std::nullopt : std::optional(best);
}

}  // namespace shardplan
