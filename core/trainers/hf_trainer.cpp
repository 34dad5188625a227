// Trainer of transformers.
#include "trainers/accelerate.h"

namespace shardplan::hf_trainer {

extern const TrainerDescription kTrainer;
constinit const TrainerDescription kTrainer = [] {
  TrainerDescription trainer =
      on_accelerate("hf_trainer", "Hugging Face Trainer",
                    "transformers 5.17, trainer.py; accelerate 1.15, accelerator.py");
  trainer.spoken = "hf transformers huggingface trainer";
  return trainer;
}();

}  // namespace shardplan::hf_trainer
