#include "parallel/sharding.h"

#include <fmt/format.h>

#include <cstdlib>

#include "frameworks/registry.h"

namespace shardplan {

std::optional<DivisionProblem> sharding_problem(const Model& model, const Plan& plan) {
  const FrameworkTraits& framework = traits_of(plan);
  const Quantization base = quantization_of(plan.workload);
  if (plan.workload.lora && !format_of(base).shards && framework.shards_parameters(plan))
    return DivisionProblem{
        "workload.lora.quantization",
        fmt::format("{} keeps its matrix in the layer's state, out of reach of shards "
                    "(bitsandbytes 0.50, nn/modules.py, Int8Params)",
                    name_of(base)),
        "nf4_double, or single, ddp, or deepspeed below stage 3"};
  return framework.sharding_problem(model, plan);
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
