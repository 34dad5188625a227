// TRL's trainers, which are transformers' Trainer with a head and losses of their own (TRL 1.16).
#include "trainers/accelerate.h"

namespace shardplan {

namespace trl_loss {
extern const FusedKernel kKernel;
}

namespace trl {

extern const TrainerDescription kTrainer;
constinit const TrainerDescription kTrainer =
    on_accelerate("trl", "TRL",
                  "transformers 5.17, trainer.py; TRL 1.16, sft_trainer.py, dpo_trainer.py, "
                  "kto_trainer.py, grpo_trainer.py, trainer/utils.py",
                  &trl_loss::kKernel);

}  // namespace trl

}  // namespace shardplan
