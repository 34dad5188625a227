// OLMo's YAML, by part.
#pragma once

#include "import/document.h"
#include "import/keys.h"

namespace shardplan::importing::olmo {

/// `model`: keys that change nothing beside what take_model() makes of the others.
extern const KeyTable kModelKeys;

/// The network as a class of transformers: OLMo 2 where norms stand behind layers, Llama's layers
/// with RMSNorm before them, StableLM's with LayerNorm. Throws InputError for others.
void take_model(const Document& document, Recipe& recipe);

/// `fsdp`: PyTorch's FSDP1.
void read_fsdp(Key& key);

}  // namespace shardplan::importing::olmo
