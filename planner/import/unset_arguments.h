// Arguments of a script whose values only its caller knows.
#pragma once

#include "import/recipe.h"

namespace shardplan::importing {

/// Throws InputError for one that memory depends on and that no flag says.
void refuse_unset(const Recipe& recipe, const Json& flags);

}  // namespace shardplan::importing
