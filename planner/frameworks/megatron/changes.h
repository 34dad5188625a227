// What makes a job of Megatron-LM need less.
#pragma once

#include "questions/changes.h"

namespace shardplan {

/// More GPUs share a layer, the layers or a sequence, as many samples a step as before.
void megatron_changes(std::vector<Change>& changes, const Model& model, const Plan& plan);

}  // namespace shardplan
