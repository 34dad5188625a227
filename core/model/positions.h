// How long a sequence a configuration's position encoding is made for.
#pragma once

#include <cstdint>

#include "model/config.h"

namespace shardplan {

/// Tokens of a sequence at most, as vLLM derives them (0.27, vllm/config/model.py,
/// _get_and_verify_max_len): `positions`, stretched by the rotation's factor. Types longrope and
/// llama3 have it in their positions already, and YaRN stretches the length that it began with.
/// 0 for 0, which is no limit.
std::int64_t stretched_positions(const ModelConfig& config, std::int64_t positions);

}  // namespace shardplan
