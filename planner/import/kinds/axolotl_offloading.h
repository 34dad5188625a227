// What axolotl keeps on the host of what autograd saves.
#pragma once

#include "import/keys.h"

namespace shardplan::importing::axolotl {

/// activation_offloading, and gradient_checkpointing beside it.
void read_offloading(Key& key);
void read_blocks(Key& key);

}  // namespace shardplan::importing::axolotl
