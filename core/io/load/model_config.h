// config.json (or the same as an object in a job) to the model it describes.
#pragma once

#include <string>

#include "json/document.h"
#include "model/builder.h"
#include "model/config.h"

namespace shardplan {

/// Flattens a Hugging Face config: the keys of inner objects become "text_config.hidden_size".
ModelConfig load_model_config(const Json& config, const std::string& file);

}  // namespace shardplan
