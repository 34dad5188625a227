// Trainer of transformers.
#include "trainers/accelerate.h"

namespace shardplan::hf_trainer {

extern const TrainerDescription kTrainer;
constinit const TrainerDescription kTrainer =
    on_accelerate("hf_trainer", "Hugging Face Trainer",
                  "transformers 5.17, trainer.py; accelerate 1.15, accelerator.py");

}  // namespace shardplan::hf_trainer
