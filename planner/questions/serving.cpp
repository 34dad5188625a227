#include "questions/serving.h"

#include "parallel/degrees.h"

namespace shardplan {
namespace {

bool divides(std::int64_t degree, const Job& job) {
  const Cluster& cluster = job.plan.cluster;
  const std::int64_t heads = job.model.facts.attention_heads;
  if (cluster.world() % degree != 0 || degree > cluster.gpus_per_node) return false;
  if (heads > 0 && heads % degree != 0) return false;
  Plan divided = job.plan;
  divided.parallel.tensor = degree;
  return !degree_problem(job.model, divided);
}

}  // namespace

std::optional<double> dollars_per_million(const Plan& plan, double tokens_per_second,
                                          const CostTerms& terms) {
  if (tokens_per_second <= 0) return std::nullopt;
  constexpr double kHour = 3600, kMillion = 1e6;
  const Money hour = cost_of(plan, 1, terms).per_hour;
  if (!hour.on_demand) return std::nullopt;
  return *hour.on_demand / kHour / tokens_per_second * kMillion;
}

std::vector<ServingChoice> serving_choices(const Job& job, const Calibration& calibration,
                                           const CostTerms& terms) {
  std::vector<ServingChoice> all;
  for (std::int64_t degree = 1; degree <= job.plan.cluster.gpus_per_node; degree *= 2) {
    if (!divides(degree, job)) continue;
    Plan plan = job.plan;
    plan.workload.generation.engine->tensor_parallel = degree;
    ServingChoice choice{degree, estimate(job.model, plan, calibration), std::nullopt, false};
    choice.asked = degree == job.plan.workload.generation.engine->tensor_parallel;
    choice.dollars_per_million =
        dollars_per_million(plan, choice.estimate.serving->tokens_per_second, terms);
    all.push_back(std::move(choice));
  }
  return all;
}

}  // namespace shardplan
