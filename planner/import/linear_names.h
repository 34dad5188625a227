// Names of a network's linear layers, as trainers look them up that name LoRA's targets themselves.
#pragma once

#include <string>
#include <vector>

#include "model/model.h"

namespace shardplan::importing {

/// Last parts of the names of linear layers but for the head, each once, where peft would take some
/// of them, or others, for weights of experts; empty where "all-linear" is the same.
std::vector<std::string> linears_beside_experts(const Model& model);

}  // namespace shardplan::importing
