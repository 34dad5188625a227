// One builder an architecture family; registry.cpp maps model types to them. Sources of tensor
// names, shapes and class defaults: Hugging Face transformers, models/*/configuration_*.py and
// modeling_*.py.
#pragma once

#include "model/builder.h"
#include "model/config.h"

namespace shardplan {

Model build_gpt2(const ModelConfig& config, const BuildOptions& options);
Model build_llama(const ModelConfig& config, const BuildOptions& options);

}  // namespace shardplan
