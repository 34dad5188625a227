// What a verl configuration says of its workers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "import/kinds/hydra_config.h"

namespace shardplan::importing::verl {

using Config = HydraConfig;

// Of a worker under Megatron-LM; `group`: "critic.", ...
Json megatron_framework(const Config& config, std::string_view group);
/// Fields of `parallel`. A reference is cut as the actor where it does not say otherwise.
Json megatron_degrees(const Config& config, std::string_view group);
/// Field `checkpointing`, of override_transformer_config.
Json megatron_checkpointing(const Config& config);

// Of a worker over FSDP; `options`: the path before its options' names.
/// Field `framework`. `gpus`: of all machines, 0 where the file does not say how many.
Json fsdp_framework(const Config& config, const std::string& options, bool second,
                    std::int64_t gpus);
/// Field `precision`: fp32 weights in shards that compute in `dtype`, unless the file says
/// otherwise.
std::string fsdp_precision(const Config& config, const std::string& options);

/// A file or command of verl's supervised trainer.
void read_sft(const Document& document, Recipe& recipe);
/// The same of its trainer of engines (verl.trainer.sft_trainer).
void read_sft_of_engines(const Document& document, Recipe& recipe);
/// The models, the batches and the engine of verl.trainer.main_ppo.
void compose_rl(const Config& config);

}  // namespace shardplan::importing::verl
