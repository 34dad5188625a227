// What verl's fully asynchronous trainer is told (0.8: verl/experimental/fully_async_policy).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "json/document.h"
#include "rollout/engine.h"

namespace shardplan {

/// Whether an engine on GPUs of its own asks for that trainer: more than one step behind, or
/// answers that go on under new weights. Else it is the recipe of one step behind.
bool verl_is_asynchronous(const RolloutEngine& engine);

/// Its block `async_training`. `prompts`: between two hand-overs; `of_update`: of a mini-batch.
Json verl_async_training(const RolloutEngine& engine, std::int64_t prompts, std::int64_t of_update);

}  // namespace shardplan
