// What a worker of any model is: its framework, where it waits, which model it has.
#include <fmt/format.h>

#include "import/kinds/verl_composer.h"

namespace shardplan::importing::verl {

std::string Composer::strategy(std::string_view group) const {
  // ppo_megatron_trainer.yaml is the configuration of workers under Megatron-LM.
  const bool megatron = c_.text("config_name", "").find("megatron") != std::string::npos ||
                        c_.said("actor_rollout_ref.actor.megatron") != nullptr;
  return c_.text(at(group, "strategy"),
                 c_.text(at(kActor, "strategy"), megatron ? "megatron" : "fsdp"));
}

/// `options`: where a worker's FSDP options stand.
Json Composer::framework_of(std::string_view group, const std::string& strategy,
                            std::string_view options) const {
  if (strategy == "megatron") return megatron_framework(c_, group);
  if (strategy != "fsdp" && strategy != "fsdp2")
    c_.refuse(at(group, "strategy"), fmt::format("a worker under {} is not estimated", strategy),
              "fsdp, fsdp2 or megatron");
  return fsdp_framework(c_, at(group, options), strategy == "fsdp2", gpus());
}

/// "gpu", "parameters", "optimizer" or "host".
std::string Composer::idle_of(std::string_view group, std::string_view options) const {
  const bool parameters = c_.flag(at(group, options) + "param_offload", false);
  const bool optimizer = c_.flag(at(group, options) + "optimizer_offload", false);
  if (parameters && optimizer) return "host";
  return parameters ? "parameters" : optimizer ? "optimizer" : "gpu";
}

/// One GPU has nothing to gather: the whole model is there in its turn.
void Composer::keep_on_host(Json& role) const {
  if (gpus() > 1)
    role["framework"]["cpu_offload"] = true;
  else
    role["idle"] = "host";
}

/// A model, by the path that a worker has; nothing where it is the actor's own.
void Composer::take_model(Json& role, std::string_view path) const {
  const Json* own = c_.said(path);
  const Json* actor = c_.said(at(kModel, "path"));
  if (own == nullptr || (actor != nullptr && *own == *actor)) return;
  if (recipe_.has_model) return;
  role["model"] = *own;
  c_.came_from(path.starts_with("critic") ? "/workload/models/critic/model"
                                          : "/workload/models/reward/model",
               path);
}

}  // namespace shardplan::importing::verl
