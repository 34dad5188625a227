// What axolotl's own keys become, and those that change nothing.
#pragma once

#include <span>

#include "import/keys.h"

namespace shardplan::importing::axolotl {

extern const KeyTable kKeys;

/// Keys that an estimate does not depend on.
std::span<const IgnoredKeys> ignored_keys();

}  // namespace shardplan::importing::axolotl
