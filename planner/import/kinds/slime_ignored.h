// Arguments of slime that a step does not depend on.
#pragma once

#include <span>

#include "import/keys.h"

namespace shardplan::importing::slime {

std::span<const IgnoredKeys> slime_ignored_keys();

}  // namespace shardplan::importing::slime
