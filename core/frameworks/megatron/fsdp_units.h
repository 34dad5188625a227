// What Megatron-FSDP gathers and reduces at once.
#pragma once

#include <cstdint>

#include "model/model.h"

namespace shardplan {

/// Elements of the largest layer of a stage.
std::int64_t largest_block(const Model& own);

/// Elements of a stage's parameters that no list of layers has: the embedding, the head.
std::int64_t outside_blocks(const Model& own);

}  // namespace shardplan
