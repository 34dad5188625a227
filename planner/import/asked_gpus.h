// How many GPUs a recipe's files ask for, whatever kind they are of.
#pragma once

#include <cstdint>
#include <optional>

#include "import/recipe.h"
#include "load/hardware.h"

namespace shardplan::importing {

/// Nothing where no file says it.
std::optional<std::int64_t> asked_gpus(const Recipe& recipe);

/// "H100-80GB" alone, for as many as the files ask for; else `cluster` as it is.
Json counted(const Json& cluster, const Recipe& recipe, const HardwareCatalog& hardware);

}  // namespace shardplan::importing
