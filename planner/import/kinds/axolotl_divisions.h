// How axolotl divides a model over GPUs.
#pragma once

#include "import/keys.h"

namespace shardplan::importing::axolotl {

void read_fsdp(Key& key);
void read_fsdp_config(Key& key);
void read_version(Key& key);
void read_context_degree(Key& key);
void read_expert_degree(Key& key);
void read_degree(Key& key);

}  // namespace shardplan::importing::axolotl
