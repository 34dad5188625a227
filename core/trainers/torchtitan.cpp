// torchtitan: a loop over FSDP2's modules, in which every micro-batch reduces its gradients.
// apply_fsdp makes a unit of the embeddings and one of norm and head, which stays gathered unless
// fsdp_reshard_after_forward is "always".
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
        "torchtitan/models/{llama3,llama4}/infra/parallelize.py",
};

}  // namespace shardplan::torchtitan
