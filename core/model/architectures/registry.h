// The architectures that shardplan knows, by the model_type of their config.json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/builder.h"
#include "model/config.h"

namespace shardplan {

/// Builds the model that `config` (with its "model_type") describes. Throws InputError for an
/// unsupported type (naming the supported ones), a bad value or values that contradict each other.
Model build_model(const ModelConfig& config, const BuildOptions& options);

/// Some families write every layer down, so an absurd number of layers would fill the memory
/// before anything could be said about it; no network comes near. Throws InputError for such a
/// number in `config` itself: what is inside is for who reads it to check.
void check_layer_counts(const ModelConfig& config);

/// Whether networks of that type read images, and are described with them.
bool reads_images(std::string_view model_type);

/// The supported model types, sorted.
std::vector<std::string> supported_model_types();

}  // namespace shardplan
