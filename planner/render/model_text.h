// The answer of `shardplan model`.
#pragma once

#include <string>

#include "json/document.h"
#include "model/model.h"

namespace shardplan {

/// Totals, the groups of tensors with shapes and counts, and what was assumed. With `every`, all
/// tensors by name.
std::string model_text(const Model& model, bool every);
Json model_json(const Model& model, bool every);

}  // namespace shardplan
