// The `model` of a job to what the engine knows of it.
#pragma once

#include "json/document.h"
#include "load/model.h"
#include "model/spec.h"

namespace shardplan::validator {

/// Throws InputError naming the key for a model that the engine cannot run: another family, a
/// sliding window shorter than the sequence, a form of rotary scaling that it does not know.
NetworkSpec read_spec(const Json& model, const ModelContext& context, std::int64_t sequence);

}  // namespace shardplan::validator
