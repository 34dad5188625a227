// The keys of transformers' TrainingArguments (5.17), which files of many trainers share: its own,
// TRL's, LLaMA-Factory's and ms-swift's classes are subclasses of it.
#pragma once

#include "import/keys.h"

namespace shardplan::importing {

extern const KeyTable kTrainingKeys;

/// What TrainingArguments takes where a file is silent: a batch of 8, a clipping norm of 1, fused
/// AdamW.
void training_defaults(Recipe& recipe);

/// peft's and TRL's keys for LoRA and for the base's form (TRL 1.16, model_config.py).
extern const KeyTable kLoraKeys;

/// What a quantized base is made of: load_in_4bit and its companions, or load_in_8bit.
void read_load_in_4bit(Key& key);
void read_load_in_8bit(Key& key);

}  // namespace shardplan::importing
