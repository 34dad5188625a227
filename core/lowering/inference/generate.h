// Generation with a KV cache as transformers' models run it: one pass over the prompt, then one a
// token. docs/explanation/inference.md derives what is allocated.
#pragma once

#include <vector>

#include "lowering/inference/pass.h"
#include "program/program.h"

namespace shardplan {

/// The passes after the prompt that a program has: all of them, or, where there are many, some at
/// even distances, the last one included. What lies between grows evenly.
std::vector<Pass> decode_passes(const Workload& workload);

/// The program of one round: phases prefill and decode.
Program lower_generation(const Model& model, const Plan& plan);

/// Keys and values of all layers after the last token; 0 where a workspace has room for them.
std::int64_t full_cache_bytes(const Model& model, const Plan& plan);
/// The same with each head of keys once, as engines have it.
std::int64_t engine_cache_bytes(const Model& model, const Plan& plan);

/// One pass alone, without phases or cache growth around it: for time.
Program lower_pass(const Model& model, const Plan& plan, const Pass& pass, const Pass* before);

}  // namespace shardplan
