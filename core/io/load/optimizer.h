// The `optimizer` of a job: a name or an object.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/reader.h"
#include "plan/optimizer.h"

namespace shardplan {

/// Reads `optimizer` of `job`: absent means fused AdamW. Throws for an implementation that the
/// optimizer lacks; where the job names none and there is no fused one, `assumed` gets what is
/// taken.
Optimizer load_optimizer(ObjectReader& job, std::vector<std::string>& assumed);

/// The optimizer that DeepSpeed builds for `type` of a ds_config ("AdamW", "Lion", ...); throws for
/// one whose memory is not known.
Optimizer deepspeed_optimizer(std::string_view type, const std::string& file);

std::string_view name_of(OptimizerImplementation implementation);

}  // namespace shardplan
