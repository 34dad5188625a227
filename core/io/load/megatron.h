// The `framework` of a job for Megatron-LM.
#pragma once

#include "json/reader.h"
#include "plan/plan.h"

namespace shardplan {

MegatronOptions read_megatron(ObjectReader& framework);

/// Throws for what Megatron-LM cannot do.
void check_megatron(const ObjectReader& job, const Plan& plan);

}  // namespace shardplan
