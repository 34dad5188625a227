// torchtitan's models by name and flavor, as configurations of transformers' classes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/document.h"

namespace shardplan::importing {

/// "llama3", "8B"; nothing for what is not known (v0.2.2, models/*/__init__.py).
std::optional<Json> torchtitan_model(std::string_view name, std::string_view flavor);
std::vector<std::string> torchtitan_flavors(std::string_view name);
std::vector<std::string> torchtitan_names();

/// What the flavor "debugmodel" makes of a configuration of transformers
/// (experiments/transformers_modeling_backend/__init__.py, model/args.py).
void shrink_to_debug_model(Json& config);

}  // namespace shardplan::importing
