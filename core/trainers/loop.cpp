// A loop of one's own: forward, backward, clip, step.
#include "trainers/description.h"

namespace shardplan::loop {

extern const TrainerDescription kTrainer;
constinit const TrainerDescription kTrainer{
    .name = "loop",
    .words = "a PyTorch loop",
    .spoken = "pytorch torch plain",
    .frees_outputs = true,
    .tiles_mlps = true,  // DeepSpeed's function in the model's place
    .runs_rlhf = true,
};

}  // namespace shardplan::loop
