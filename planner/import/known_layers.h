// How deep the model of a file is, where the catalogue or a folder tells.
#pragma once

#include <cstdint>

#include "import/document.h"
#include "import/recipe.h"

namespace shardplan::importing {

/// Layers of the model that a flag or else `recipe` names, as its config.json has them
/// (num_hidden_layers, of the text where it reads images too); 0 where none is known.
std::int64_t known_layers(const Recipe& recipe, const Document& document);

}  // namespace shardplan::importing
