// LLaMA-Factory's files of its second version.
#pragma once

#include "import/document.h"
#include "import/recipe.h"

namespace shardplan::importing {

/// "model", "peft_config", "dist_config" and so on (ff6d4d12e, src/llamafactory/v1).
void read_llamafactory_v1(const Document& document, Recipe& recipe);

}  // namespace shardplan::importing
