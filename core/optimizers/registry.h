// All optimizers.
#pragma once

#include <span>
#include <string_view>

#include "optimizers/description.h"

namespace shardplan {

/// In the order in which people are shown them.
std::span<const OptimizerDescription* const> optimizers();

/// By the name or a spelling that jobs use; null: there is none.
const OptimizerDescription* find_optimizer(std::string_view name);

/// By what DeepSpeed calls it in optimizer.type, upper and lower case alike; null: there is none.
const OptimizerDescription* find_deepspeed_optimizer(std::string_view type);

}  // namespace shardplan
