// TRL's SFTTrainer, which is transformers' Trainer with a data collator and metrics of its own.
#include "trainers/accelerate.h"

namespace shardplan::trl {

extern const TrainerDescription kTrainer;
constinit const TrainerDescription kTrainer =
    on_accelerate("trl", "TRL", "transformers 5.17, trainer.py; trl/trainer/sft_trainer.py");

}  // namespace shardplan::trl
