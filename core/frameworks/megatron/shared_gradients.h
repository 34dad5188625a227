// Parameters whose gradients several ranks add up beside their data-parallel sums.
#pragma once

#include <cstdint>

#include "model/model.h"

namespace shardplan {

/// The table that trains, which an embedding looks up and a linear multiplies by; kNone: there is
/// none.
ParameterId tied_table(const Model& model);

/// Elements that train and that every tensor-parallel rank has whole, of code that is not Megatron
/// Core's (megatron/core/models/huggingface/module.py; distributed/finalize_model_grads.py).
std::int64_t whole_elements(const Model& model);

}  // namespace shardplan
