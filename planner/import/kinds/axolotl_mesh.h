// axolotl's division of GPUs into copies of the states.
#pragma once

#include "import/keys.h"

namespace shardplan::importing::axolotl {

/// dp_shard_size: GPUs that divide one copy, beside those of the context degree.
void read_shard_size(Key& key);
/// dp_replicate_size: how many copies there are.
void read_copies(Key& key);

}  // namespace shardplan::importing::axolotl
