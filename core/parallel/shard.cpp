#include "parallel/shard.h"

#include "frameworks/registry.h"
#include "parallel/expert_split.h"
#include "parallel/sequence_split.h"
#include "parallel/tensor_split.h"

namespace shardplan {

bool is_sharded(const Plan& plan) {
  const Parallel& p = plan.parallel;
  return p.tensor > 1 || p.sequence > 1 || p.context > 1 || p.expert > 1;
}

Model shard(const Model& whole, const Plan& plan) {
  Model part = whole;
  const SplitStyle style = traits_of(plan).split;
  if (plan.parallel.sequence > 1 || plan.parallel.context > 1) split_sequences(part, plan);
  const bool exchanges = traits_of(plan).experts(plan) != ExpertExchange::same_tokens;
  if (plan.parallel.expert > 1 && exchanges) split_experts(part, plan);
  if (plan.parallel.tensor > 1) split_tensors(part, plan, style);
  return part;
}

}  // namespace shardplan
