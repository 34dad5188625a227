// config.json (or the same as an object in a job) to the model it describes.
#pragma once

#include <string>

#include "json/document.h"
#include "model/builder.h"
#include "model/config.h"

namespace shardplan {

/// Flattens a Hugging Face config. Wrappers of text models inside multimodal ones ("text_config")
/// are opened: their keys take precedence.
ModelConfig load_model_config(const Json& config, const std::string& file);

}  // namespace shardplan
