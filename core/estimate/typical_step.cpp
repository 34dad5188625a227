#include "estimate/typical_step.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"

namespace shardplan {

TypicalStep typical_step(const Plan& plan) {
  const Workload& w = plan.workload;
  TypicalStep typical;
  typical.tokens = w.sequence_length;
  if (w.packing) return typical;
  const auto samples = static_cast<double>(w.micro_batch);
  const double own = expected_longest(*w.lengths, samples);
  const double of_all =
      expected_longest(*w.lengths, samples * static_cast<double>(plan.data_ranks()));
  const double waited =
      own + (of_all - own) / std::sqrt(static_cast<double>(w.gradient_accumulation));
  const std::int64_t pieces = plan.parallel.sequence * plan.parallel.context;
  const auto tokens = static_cast<std::int64_t>(std::ceil(waited));
  typical.tokens = std::min(w.sequence_length, pieces > 1 ? round_up(tokens, 2 * pieces) : tokens);
  typical.counted = std::min(1.0, w.lengths->mean / static_cast<double>(typical.tokens));
  return typical;
}

Plan plan_of_typical_step(const Plan& plan, const TypicalStep& typical) {
  Plan same = plan;
  Workload& w = same.workload;
  if (w.target_length == w.sequence_length) w.target_length = typical.tokens;
  w.sequence_length = typical.tokens;
  w.lengths.reset();
  return same;
}

}  // namespace shardplan
