// torchtitan: a loop over FSDP2's modules, in which every micro-batch reduces its gradients.
#include "trainers/description.h"

namespace shardplan::torchtitan {

extern const TrainerDescription kTrainer;
constinit const TrainerDescription kTrainer{
    .name = "torchtitan",
    .words = "torchtitan",
    .runs_engines = false,
    .compiles = CompileScope::block,
    .source = "torchtitan/train.py",
};

}  // namespace shardplan::torchtitan
