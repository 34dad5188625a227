#include "questions/search/goal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "frameworks/planning_registry.h"

namespace shardplan {
namespace {

const double kTimeStep = std::log(1.005);
/// Tokens/s of unseen eager steps are 5 % off in the mean (docs/explanation/time.md, "Steps
/// measured later").
const double kTie = std::log(1.05) / kTimeStep;
constexpr std::int64_t kMemoryStep = std::int64_t{64} << 20;

/// In units of the time step: GPU seconds for a token, without rounding anew.
double cost_of(const Score& s) {
  return static_cast<double>(s.time) + std::log(static_cast<double>(s.gpus)) / kTimeStep;
}

std::array<double, 5> order(Objective objective, const Score& s) {
  const double time = static_cast<double>(s.time), memory = static_cast<double>(s.memory),
               gpus = static_cast<double>(s.gpus), unknown = s.unknown_host ? 1 : 0;
  switch (objective) {
    case Objective::throughput:
      return {unknown, time, gpus, memory, 0};
    case Objective::cost:
      return {unknown, cost_of(s), time, gpus, memory};
    case Objective::gpus:
      return {unknown, gpus, time, memory, 0};
    case Objective::memory:
      return {unknown, memory, time, gpus, 0};
  }
  return {};
}

}  // namespace

std::string_view name_of(Objective objective) {
  switch (objective) {
    case Objective::throughput:
      return "throughput";
    case Objective::cost:
      return "cost";
    case Objective::gpus:
      return "gpus";
    case Objective::memory:
      return "memory";
  }
  return "";
}

double longest_step(const Plan& plan, const Goal& goal) {
  double most = std::numeric_limits<double>::infinity();
  const Limits& limits = goal.limits;
  if (limits.step_seconds) most = std::min(most, *limits.step_seconds);
  const Cost second = cost_of(plan, 1.0, goal.terms);  // everything grows with the step
  if (const auto& money = second.per_billion_tokens.on_demand;
      limits.money_per_billion_tokens && money)
    most = std::min(most, *limits.money_per_billion_tokens / *money);
  if (limits.days && second.days) most = std::min(most, *limits.days / *second.days);
  return most;
}

Score score_of(const Plan& plan, double step_seconds, std::int64_t device_bytes) {
  Score s;
  if (step_seconds > 0)
    s.time = static_cast<std::int64_t>(
        std::floor(std::log(step_seconds / tokens_per_step(plan)) / kTimeStep));
  s.memory = device_bytes / kMemoryStep;
  s.gpus = plan.paid_gpus();
  const PeerJob job = planning_of(plan).peers(plan);
  s.off_gpu = (job.offloads_optimizer ? 1 : 0) + (job.offloads_parameters ? 1 : 0);
  s.unknown_host = s.off_gpu > 0 && !plan.cluster.host_memory;
  return s;
}

bool dominates(const Score& a, std::int64_t index_a, const Score& b, std::int64_t index_b) {
  if (a.time > b.time || a.memory > b.memory || a.gpus > b.gpus || a.off_gpu > b.off_gpu ||
      a.unknown_host > b.unknown_host)
    return false;
  return a.time < b.time || a.memory < b.memory || a.gpus < b.gpus || a.off_gpu < b.off_gpu ||
         index_a < index_b;
}

bool better(Objective objective, const Score& a, std::int64_t index_a, const Score& b,
            std::int64_t index_b) {
  const auto left = order(objective, a), right = order(objective, b);
  return left != right ? left < right : index_a < index_b;
}

std::size_t simplest_of_ties(Objective objective, const std::vector<Score>& best_first) {
  const bool by_time = objective == Objective::throughput || objective == Objective::cost;
  std::size_t chosen = 0;
  for (std::size_t i = 1; by_time && i < best_first.size(); ++i) {
    const auto aim = [&](const Score& s) { return order(objective, s)[1]; };
    const bool tied = best_first[i].unknown_host == best_first[0].unknown_host &&
                      aim(best_first[i]) <= aim(best_first[0]) + kTie;
    if (tied && best_first[i].off_gpu < best_first[chosen].off_gpu) chosen = i;
  }
  return chosen;
}

}  // namespace shardplan
