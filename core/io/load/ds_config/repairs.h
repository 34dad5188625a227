// Repairs that many rules share.
#pragma once

#include "load/ds_config/rule.h"

namespace shardplan::repair {

/// The key goes: it does nothing, or DeepSpeed refuses it.
std::vector<Edit> remove_it(const Diagnostic& finding, const Json& document);

/// The key takes its nearest known name, in its own block or as a whole path.
std::vector<Edit> rename_to_nearest(const Diagnostic& finding, const Json& document);

/// The value becomes the nearest allowed one.
std::vector<Edit> set_nearest(const Diagnostic& finding, const Json& document);

/// HF Trainer fills it in.
std::vector<Edit> set_auto(const Diagnostic& finding, const Json& document);

/// The value in the type that DeepSpeed reads it as.
std::vector<Edit> set_as_read(const Diagnostic& finding, const Json& document);

/// A deprecated key becomes its replacement.
std::vector<Edit> move_deprecated_key(const Diagnostic& finding, const Json& document);

}  // namespace shardplan::repair
