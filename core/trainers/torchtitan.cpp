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
    .shards_ends_apart = true,
    .drops_outputs = true,
    .shards_lone_experts = true,
    .source =
        "torchtitan/train.py, torchtitan/distributed/activation_checkpoint.py, "
        "torchtitan/models/llama3/infra/parallelize.py, "
        "torchtitan/models/llama4/infra/parallelize.py "
        "(v0.2.2)",
};

}  // namespace shardplan::torchtitan
