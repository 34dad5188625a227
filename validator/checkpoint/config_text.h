// The config.json beside whole weights, with which Hugging Face's from_pretrained makes the network
// that the job trained.
#pragma once

#include <string>

#include "job/engine_job.h"

namespace shardplan::validator {

/// The configuration that the job's model names or is, with the class of its causal language model
/// and the type of the weights; of a decoder that trains whole.
std::string config_text(const EngineJob& job);

}  // namespace shardplan::validator
