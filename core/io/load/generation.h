// The workload of kind inference: a batch of prompts and the tokens that are generated for each.
#pragma once

#include "json/reader.h"
#include "model/model.h"
#include "plan/plan.h"

namespace shardplan {

/// Reads batch, prompt_length, new_tokens, quantization and kv_cache_dtype of `workload`; what is
/// absent is left at 0 or its default.
Workload read_generation(ObjectReader& workload);

/// Throws for a model or framework that generation is not modelled for. `job` is for messages.
void check_generation(ObjectReader& job, const Model& model, const Plan& plan);

}  // namespace shardplan
