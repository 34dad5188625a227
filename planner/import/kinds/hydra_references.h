// OmegaConf's references from one value of a configuration to others, and sums of them.
#pragma once

#include "json/document.h"

namespace shardplan::importing {

/// Puts in the place of "${a.b}", "${.b}" and "${mul:${a.b}, 2}" (add, div, max and min too) what
/// they stand for. What is no such text, or stands for nothing, stays as it is.
void resolve_references(Json& whole);

}  // namespace shardplan::importing
