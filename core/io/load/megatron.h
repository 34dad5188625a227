// The `framework` of a job for Megatron-LM.
#pragma once

#include "json/reader.h"
#include "plan/plan.h"

namespace shardplan {

/// Throws for options that contradict each other.
void check_megatron_options(const ObjectReader& framework, const MegatronOptions& options);

/// Throws for what Megatron-LM cannot do.
void check_megatron(const ObjectReader& job, const Plan& plan);

}  // namespace shardplan
