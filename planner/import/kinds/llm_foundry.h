// LLM Foundry's YAML, by part.
#pragma once

#include "import/document.h"
#include "import/keys.h"

namespace shardplan::importing::llm_foundry {

/// `model`: MPT by its sizes, or a model of transformers by its name.
void read_model_name(Key& key);
void read_overrides(Key& key);
void read_peft(Key& key);
extern const KeyTable kModelKeys;

/// `fsdp_config`, which composer hands to FSDP1.
void read_fsdp(Key& key);

}  // namespace shardplan::importing::llm_foundry
