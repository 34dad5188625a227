// How transformers brings a model to the GPU whose linears it quantizes: what that leaves free
// inside of blocks is where steps find room.
#pragma once

#include <vector>

#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

/// The allocations and frees that leave all parameters as built (append_parameters), of a plan
/// with a quantized base:
/// - one block for the whole stored model, asked for and given back, so that everything is cut off
///   it (transformers 5.17, modeling_utils.py, caching_allocator_warmup);
/// - what stays in 16 bits, and each weight in 16 bits beside its packed form, then without
///   (core_model_loading.py; bitsandbytes quantizes on the GPU);
/// - where peft prepares for k-bit training, fp32 copies of what is not packed, whose 16 bits go;
///   then cached segments are given back (peft 0.20, utils/other.py,
///   prepare_model_for_kbit_training);
/// - adapters.
std::vector<Event> load_packed_model(const Model& model, const Plan& plan);

}  // namespace shardplan
