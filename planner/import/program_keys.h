// Keys of people's own programs around transformers' Trainer, beside TrainingArguments: which part
// of a model trains, and in how many bits its base is.
#pragma once

#include "import/keys.h"

namespace shardplan::importing {

/// LLaVA, Qwen's and InternVL's fine-tuning, QLoRA's script, Firefly, LMFlow, FlagEmbedding,
/// open-instruct: each where the rule is.
extern const KeyTable kProgramKeys;

/// Whether the file says that all parameters train, whatever it says of adapters beside.
bool trains_all(const Document& document);

}  // namespace shardplan::importing
