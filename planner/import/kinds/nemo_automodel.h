// Recipes of NeMo Automodel 0.5 for transformers' models under FSDP2 (nemo_automodel/recipes).
#pragma once

#include "import/kinds/kind.h"

namespace shardplan::importing::nemo {

void read_automodel(const Document& d, Recipe& recipe);

}  // namespace shardplan::importing::nemo
