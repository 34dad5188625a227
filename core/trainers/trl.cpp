// TRL's trainers, which are transformers' Trainer with a head and losses of their own (TRL 1.16).
#include "trainers/accelerate.h"

namespace shardplan {

namespace trl_loss {
extern const FusedKernel kKernel;
}

namespace trl {

extern const TrainerDescription kTrainer;
constinit const TrainerDescription kTrainer = [] {
  TrainerDescription trainer = on_accelerate(
      "trl", "TRL", "transformers 5.17, trainer.py; TRL 1.16, sft_trainer.py", &trl_loss::kKernel);
  // prepare_fsdp (trl/models/utils.py) calls fully_shard on the reference's root alone.
  trainer.shards_frozen_whole = true;
  trainer.runs_rlhf = true;
  trainer.shares_base = true;           // dpo_trainer.py: no ref_model for a PeftModel
  trainer.scores_micro_batches = true;  // grpo_trainer.py, _generate_and_score_completions
  return trainer;
}();

}  // namespace trl

}  // namespace shardplan
