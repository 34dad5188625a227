// GPUs that a rollout engine has for its own, as several trainers' files say them.
#pragma once

#include <cstdint>

#include "import/recipe.h"

namespace shardplan::importing {

/// `gpus` of its own on `machines`, beside those of the recipe. Where both are no more than a usual
/// machine has, and in as many machines, they are taken to be in the same ones, with a note.
void take_engine_gpus(Json& rollout, Recipe& recipe, std::int64_t gpus, std::int64_t machines);

}  // namespace shardplan::importing
