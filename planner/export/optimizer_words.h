// What transformers' --optim calls a plan's optimizer.
#pragma once

#include <string_view>

#include "plan/plan.h"

namespace shardplan {

/// "" where transformers has none of it.
std::string_view transformers_optimizer(const Plan& plan);

}  // namespace shardplan
