// torchtitan: a loop over FSDP2's modules, in which every micro-batch reduces its gradients.
#include "trainers/description.h"

namespace shardplan::torchtitan {

extern const TrainerDescription kTrainer;
constinit const TrainerDescription kTrainer{
    .name = "torchtitan",
    .words = "torchtitan",
    .runs_engines = false,
    .compiles = CompileScope::block,
    .recomputation_stops_early = false,
    .source = "torchtitan/train.py, torchtitan/distributed/activation_checkpoint.py",
};

}  // namespace shardplan::torchtitan
