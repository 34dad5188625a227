#include "parallel/shard.h"

#include "frameworks/registry.h"
#include "parallel/cuts.h"
#include "parallel/expert_split.h"
#include "parallel/sequence_split.h"
#include "parallel/tensor_split.h"

namespace shardplan {

bool is_sharded(const Plan& plan) {
  const Parallel& p = plan.parallel;
  return p.tensor > 1 || p.sequence > 1 || p.context > 1 || p.expert > 1;
}

namespace {

/// A serving engine divides every family that it has, in Megatron-LM's way (vllm/model_executor/
/// layers/linear.py: columns, then rows), whether transformers publishes a plan or not. It makes
/// tables longer where ranks do not divide them (vocab_parallel_embedding.py).
SplitStyle style_of(const Model& whole, const Plan& plan) {
  const bool even = whole.facts.vocabulary % plan.parallel.tensor == 0;
  if (plan.workload.generation.engine && (!even || !has_plan_by_name(whole, plan)))
    return SplitStyle::megatron;
  return traits_of(plan).split;
}

}  // namespace

Model shard(const Model& whole, const Plan& plan) {
  Model part = whole;
  const SplitStyle style = style_of(whole, plan);
  if (plan.parallel.sequence > 1 || plan.parallel.context > 1) split_sequences(part, plan);
  const bool exchanges = traits_of(plan).experts(plan) != ExpertExchange::same_tokens;
  if (plan.parallel.expert > 1 && exchanges) split_experts(part, plan);
  if (plan.parallel.tensor > 1) split_tensors(part, plan, style);
  return part;
}

}  // namespace shardplan
