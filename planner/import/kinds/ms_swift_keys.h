// Keys that ms-swift's commands have in common, under Megatron Core or not.
#pragma once

#include <span>

#include "import/keys.h"

namespace shardplan::importing::ms_swift {

void read_tuner(Key& key);         ///< tuner_type, train_type
void read_rank(Key& key);          ///< lora_rank
void read_targets(Key& key);       ///< target_modules
void read_saved(Key& key);         ///< modules_to_save
void read_padding_free(Key& key);  ///< padding_free

/// What tuner_args.py and megatron_args.py both have where a file says nothing of adapters.
void fill_lora(Recipe& recipe);

/// Keys that an estimate does not depend on.
std::span<const IgnoredKeys> ignored_keys();

}  // namespace shardplan::importing::ms_swift
