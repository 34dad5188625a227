// The configuration beside whole weights, with which from_pretrained of transformers, or of peft,
// makes the network that the job trained.
#pragma once

#include <string>

#include "job/engine_job.h"

namespace shardplan::validator {

/// The configuration that the job's model names or is, with the class of its causal language model
/// and the type of the weights; of a decoder that trains whole.
std::string config_text(const EngineJob& job);

/// peft's adapter_config.json; of a network with adapters. The base is named as the job names it,
/// if that is a name.
std::string adapter_config_text(const EngineJob& job);

}  // namespace shardplan::validator
