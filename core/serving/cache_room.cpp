#include "serving/cache_room.h"

#include <algorithm>

#include "base/checked.h"
#include "rollout/engine.h"

namespace shardplan {
namespace {

/// Full blocks of a prompt that its later completions find: the last token is computed again for
/// its logits, and with it the block that it is in (vllm/v1/core/kv_cache_manager.py,
/// get_computed_blocks; SGLang's Req._compute_max_prefix_len, of pages).
std::int64_t found_blocks(const RolloutEngine& engine, const Workload& workload) {
  if (!engine.prefix_caching || engine.completions == 1) return 0;
  return (workload.sequence_length - 1) / engine.block_tokens;
}

/// Where a pass does not find what it computes itself, all completions that come into one.
std::int64_t computing(const RolloutEngine& engine, const Workload& workload) {
  if (engine.engine->finds_in_pass) return 1;
  const std::int64_t in_pass = engine.batched_tokens / workload.sequence_length;
  return std::clamp<std::int64_t>(in_pass, 1, engine.completions);
}

}  // namespace

CacheRoom::CacheRoom(const RolloutEngine& engine, const Workload& workload)
    : completions_(engine.completions),
      prompt_(workload.sequence_length),
      found_(checked_mul(found_blocks(engine, workload), engine.block_tokens)),
      computing_(computing(engine, workload)),
      shared_(workload.generation.shared_prefix / engine.block_tokens),
      of_prompt_(std::max<std::int64_t>(found_blocks(engine, workload) - shared_, 0)),
      own_(ceil_div(checked_add(workload.sequence_length, workload.generation.new_tokens),
                    engine.block_tokens) -
           shared_ - of_prompt_) {}

std::int64_t CacheRoom::blocks_of(std::int64_t sequences) const {
  const std::int64_t prompts = checked_mul(ceil_div(sequences, completions_), of_prompt_);
  return checked_add(checked_add(shared_, prompts), checked_mul(sequences, own_));
}

std::int64_t CacheRoom::sequences_in(std::int64_t blocks) const {
  const std::int64_t left = std::max<std::int64_t>(blocks - shared_, 0);
  const std::int64_t group = checked_add(of_prompt_, checked_mul(completions_, own_));
  const std::int64_t beside = std::max<std::int64_t>(left % group - of_prompt_, 0);
  return checked_add(checked_mul(left / group, completions_), beside / own_);
}

std::int64_t CacheRoom::prompt_tokens(std::int64_t sequences) const {
  const std::int64_t prompts = ceil_div(sequences, completions_);
  const std::int64_t whole = std::min(sequences, checked_mul(prompts, computing_));
  return checked_add(checked_mul(whole, prompt_), checked_mul(sequences - whole, prompt_ - found_));
}

}  // namespace shardplan
