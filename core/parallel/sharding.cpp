#include "parallel/sharding.h"

#include <cstdlib>

#include "frameworks/registry.h"

namespace shardplan {

std::optional<DivisionProblem> sharding_problem(const Model& model, const Plan& plan) {
  return traits_of(plan).sharding_problem(model, plan);
}

std::int64_t nearest_divisor(std::int64_t whole, std::int64_t asked) {
  std::int64_t best = 1;
  for (std::int64_t d = 1; d * d <= whole; ++d) {
    if (whole % d != 0) continue;
    for (const std::int64_t candidate : {d, whole / d}) {
      const std::int64_t distance = std::abs(candidate - asked);
      const std::int64_t least = std::abs(best - asked);
      if (distance < least || (distance == least && candidate > best)) best = candidate;
    }
  }
  return best;
}

}  // namespace shardplan
