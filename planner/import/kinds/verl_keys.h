// Keys that verl's trainers have alike, by whatever path.
#pragma once

#include "import/keys.h"

namespace shardplan::importing::verl {

void read_rank(Key& key);      ///< lora_rank, 0: no adapters
void read_targets(Key& key);   ///< target_modules, beside lora_rank
void read_mtp(Key& key);       ///< a block with a switch `enable`
void read_tiles(Key& key);     ///< tiled_mlp, where one model trains
void warn_of_tiles(Key& key);  ///< tiled_mlp beside other models
/// utils/activation_offload.py: what blocks keep goes to the host between the passes.
void read_activation_offload(Key& key);

/// Whether a block has such a switch on.
bool is_on(const Key& block, const char* name);

}  // namespace shardplan::importing::verl
