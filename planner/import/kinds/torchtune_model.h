// What `model` of a torchtune recipe makes: the network and its adapters.
#pragma once

#include "import/keys.h"

namespace shardplan::importing::torchtune {

/// "torchtune.models.llama3_1.lora_llama3_1_8b".
void read_component(Key& key);
/// Adapters of the attention, by torchtune's names.
void read_attention_targets(Key& key);
void read_mlp_targets(Key& key);
void read_output_target(Key& key);
/// encoder_trainable, decoder_trainable and fusion_trainable of Llama 3.2's vision models.
void read_trainable(Key& key);

}  // namespace shardplan::importing::torchtune
