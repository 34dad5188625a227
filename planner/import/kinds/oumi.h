// oumi's blocks as the flat arguments that it hands to transformers and TRL.
#pragma once

#include "import/document.h"
#include "import/keys.h"

namespace shardplan::importing::oumi {

/// The configuration with the keys of `training`, `model`, `peft`, `training.grpo` and
/// `training.trainer_kwargs` outside their blocks, each still shown as it was written. What has
/// another name or another default than transformers' keeps its block.
Document flattened(const Document& document);

/// `fsdp` and `deepspeed`: what divides the model.
void read_fsdp(Key& key);
void read_deepspeed(Key& key);

}  // namespace shardplan::importing::oumi
