// The GPUs that the files ask for, and the framework that divides a model over them.
#include <fmt/format.h>

#include "import/asked_gpus.h"
#include "import/finisher.h"
#include "job/fields.h"
#include "load/cluster.h"

namespace shardplan::importing {

void Finisher::take_cluster() {
  const Json* cluster = said("cluster");
  const auto gpus = asked_gpus(recipe_);
  if (cluster == nullptr)
    ask("cluster",
        gpus ? fmt::format("the files ask for {} GPU{}, and do not say which", *gpus,
                           *gpus == 1 ? "" : "s")
             : std::string("which GPUs it runs on is not in the files"),
        fmt::format("--cluster {}xH100-80GB, or another one", gpus.value_or(8)));
  const Json whole = counted(*cluster, recipe_, hardware_);
  world_ = load_cluster(whole, "<command line>", "cluster", hardware_).world();
  if (gpus && *gpus != world_)
    recipe_.note(
        {.kind = Note::Kind::warning,
         .key = "cluster",
         .reason = fmt::format("the files ask for {} GPUs; {} are estimated", *gpus, world_)});
  recipe_.job["cluster"] = whole;
}

/// A shard group of all GPUs is none: front ends that do not know how many there are leave that
/// to here.
void Finisher::drop_group_of_all() {
  Json& job = recipe_.job;
  if (!job.contains("framework") || !job.at("framework").is_object()) return;
  Json& framework = job.at("framework");
  if (framework.value("hybrid_shard_size", Json()) != Json(world_)) return;
  framework.erase("hybrid_shard_size");
  if (framework.value("sharding_strategy", "") == "hybrid_shard")
    framework.erase("sharding_strategy");
}

/// Processes that no file divides otherwise are DDP's; one alone is plain PyTorch.
void Finisher::take_framework() {
  drop_group_of_all();
  if (flags_.contains("framework")) return;
  const std::string name = framework();
  const bool alone = world_ == 1 || recipe_.one_process;
  if (recipe_.one_process && world_ > 1 && name.empty())
    ask("distributed_type", fmt::format("one process, and a cluster of {} GPUs", world_),
        "--cluster with one GPU, or distributed_type: MULTI_GPU");
  if (name.empty() || name == "ddp") {
    set_field(recipe_.job, "/framework", Json{{"name", alone ? "single" : "ddp"}});
    if (name.empty())
      recipe_.note({.kind = Note::Kind::assumed,
                    .field = fmt::format("framework: {}", alone ? "single" : "ddp"),
                    .reason = alone ? "one GPU" : "the files divide nothing: DDP on each GPU"});
  } else if (name == "fsdp2" && alone && recipe_.job.value("trainer", "") == "torchtitan") {
    set_field(recipe_.job, "/framework", Json{{"name", "single"}});
  }
}

}  // namespace shardplan::importing
