// Samples and tokens that a GPU takes at a time, in training and in scoring.
#include <algorithm>

#include "import/kinds/verl_composer.h"

namespace shardplan::importing::verl {

/// Samples a GPU takes, of a key of its own or of one for all GPUs (normalized by
/// fsdp_workers.py); 0: neither.
std::int64_t Composer::batch_of(std::string_view group, std::string_view key,
                                std::int64_t divided) const {
  const std::string whole = at(group, key);
  if (const std::int64_t all = c_.integer(whole, 0); all > 0)
    return std::max<std::int64_t>(1, all * divided / gpus());
  return c_.integer(whole + "_per_gpu", 0);
}

/// Between two updates of the engine's weights.
std::int64_t Composer::prompts(std::int64_t mini) const {
  if (c_.said("async_training") == nullptr) return c_.integer("data.train_batch_size", 1024);
  return c_.integer("async_training.trigger_parameter_sync_step", 4) *
         c_.integer("async_training.require_batches", 1) * mini;
}

void Composer::take_batches() {
  const std::int64_t repeats = c_.integer(at(kRollout, "n"), 1);
  const std::int64_t mini = c_.integer(at(kActor, "ppo_mini_batch_size"), 256);
  recipe_.global_batch = mini * repeats;
  recipe_.generated = prompts(mini) * repeats;
  dynamic_ = c_.flag(at(kActor, "use_dynamic_bsz"), false);
  std::int64_t micro = batch_of(kActor, "ppo_micro_batch_size", model_ranks_);
  const std::int64_t budget = c_.integer(at(kActor, "ppo_max_token_len_per_gpu"), 16384);
  if (dynamic_) {
    recipe_.rlhf["token_budget"] = budget;
    c_.came_from("/workload/token_budget", at(kActor, "ppo_max_token_len_per_gpu"));
    micro = std::max<std::int64_t>(1, budget * sequence_ranks_ / sequence());
    recipe_.micro_batch_at_most = true;  // of a mini-batch: dp_actor.py, update_policy
  }
  if (micro == 0) micro = recipe_.asked_micro_batch;
  if (micro == 0)
    c_.refuse(at(kActor, "ppo_micro_batch_size_per_gpu"),
              "neither said nor use_dynamic_bsz: verl asks for one of them",
              "ppo_micro_batch_size_per_gpu, use_dynamic_bsz: true, or --micro-batch");
  recipe_.set("/workload/micro_batch", micro,
              c_.origin(at(kActor, "ppo_micro_batch_size_per_gpu")));
  take_scoring(budget);
}

/// The actor and the reference score the same samples; the larger of what both take.
void Composer::take_scoring(std::int64_t budget) {
  std::int64_t tokens = 0, samples = 0;
  for (const std::string_view group : {kRollout, kReference}) {
    if (c_.flag(at(group, "log_prob_use_dynamic_bsz"), dynamic_))
      tokens = std::max(tokens, c_.integer(at(group, "log_prob_max_token_len_per_gpu"), budget));
    else
      samples = std::max(samples, batch_of(group, "log_prob_micro_batch_size", model_ranks_));
  }
  const bool both = tokens > 0 && samples > 0;
  if (both && samples * sequence() > tokens * sequence_ranks_) tokens = 0;
  if (tokens > 0)
    recipe_.rlhf["scoring_tokens"] = tokens;
  else if (samples > 0)
    recipe_.rlhf["scoring_batch"] = samples;
  c_.came_from("/workload/scoring_tokens", at(kReference, "log_prob_max_token_len_per_gpu"));
}

}  // namespace shardplan::importing::verl
