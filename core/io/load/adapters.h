// peft's adapters: what of them cannot be had together, and names that no module has.
#pragma once

#include <vector>

#include "base/diagnostic.h"
#include "json/reader.h"
#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// Warnings about `workload.lora` of a plan that is complete, its base included; throws for what
/// cannot be estimated. `job` is for messages.
std::vector<Diagnostic> check_adapters(ObjectReader& job, const Model& model, const Plan& plan);

}  // namespace shardplan
