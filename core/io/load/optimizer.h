// The `optimizer` of a job: a name or an object.
#pragma once

#include <string_view>

#include "json/reader.h"
#include "plan/optimizer.h"

namespace shardplan {

/// Reads `optimizer` of `job`: absent means fused AdamW.
Optimizer load_optimizer(ObjectReader& job);

/// The optimizer that DeepSpeed builds for `type` of a ds_config ("AdamW", "Lion", ...); throws for
/// one whose memory is not known.
Optimizer deepspeed_optimizer(std::string_view type, const std::string& file);

std::string_view name_of(OptimizerKind kind);
std::string_view name_of(OptimizerImplementation implementation);

}  // namespace shardplan
