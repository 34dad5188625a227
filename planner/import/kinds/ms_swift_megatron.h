// ms-swift's commands that start Megatron Core: megatron sft, pt and rlhf.
#pragma once

#include "import/document.h"
#include "import/recipe.h"

namespace shardplan::importing::ms_swift {

/// Megatron-LM's arguments with ms-swift's own keys and defaults (swift/megatron/arguments/
/// megatron_args.py).
void read_megatron(const Document& d, Recipe& recipe);

}  // namespace shardplan::importing::ms_swift
