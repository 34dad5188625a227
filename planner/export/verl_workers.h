// What verl's configurations say of one worker: its shards, its degrees, its engine.
#pragma once

#include <string>
#include <string_view>

#include "json/document.h"
#include "plan/plan.h"
#include "rollout/engine.h"

namespace shardplan {

// All throw InputError for what verl has no key of. `framework` is an object as jobs have it.

void check_verl_optimizer(const Plan& plan);
/// "fsdp" or "fsdp2".
std::string verl_strategy(const Json& framework);
/// fsdp_config of a model that trains or waits.
Json verl_fsdp_worker(const Json& framework, std::string_view precision);

/// `megatron` of the actor.
Json verl_megatron_worker(const Plan& plan, const Json& parallel);
/// Its degrees alone, of a job's `parallel`.
Json verl_degrees(const Json& parallel);

/// Keys of `rollout`. `sequence`: tokens of a prompt and its answer, which verl takes as the
/// longest.
Json verl_rollout(const RolloutEngine& engine, std::int64_t sequence);
/// Those of the engine that judges answers; `engine` as a job's reward model has it.
Json verl_judge(const Json& engine);

}  // namespace shardplan
