// Megatron-LM's arguments that an estimate does not depend on, or that another argument brings.
#pragma once

#include <span>

#include "import/keys.h"

namespace shardplan::importing {

std::span<const IgnoredKeys> megatron_ignored_keys();

}  // namespace shardplan::importing
