// A base that LoRA freezes and bitsandbytes stores in fewer bits: what goes wrong with it, or costs
// more than people expect.
#pragma once

#include <vector>

#include "base/diagnostic.h"
#include "json/reader.h"
#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// Warnings about `workload.lora` of a plan that is complete; throws for what contradicts itself.
/// `job` is for messages.
std::vector<Diagnostic> check_quantized_base(ObjectReader& job, const Model& model,
                                             const Plan& plan);

}  // namespace shardplan
