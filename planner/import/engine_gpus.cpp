#include "import/engine_gpus.h"

#include <algorithm>

#include "base/checked.h"

namespace shardplan::importing {

void take_engine_gpus(Json& rollout, Recipe& recipe, std::int64_t gpus, std::int64_t machines) {
  constexpr std::int64_t kUsualMachine = 8;
  rollout["gpus"] = gpus;
  const std::int64_t beside = ceil_div(gpus, std::max<std::int64_t>(1, machines));
  if (machines != recipe.machines || *recipe.per_machine + beside > kUsualMachine) return;
  rollout["same_machines"] = true;
  recipe.note({.kind = Note::Kind::assumed,
               .field = "workload.rollout.same_machines: true",
               .reason = "the engine's GPUs and the trainer's are no more than a machine has"});
}

}  // namespace shardplan::importing
