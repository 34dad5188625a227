// The kernels that the native engine starts, for the time model.
#pragma once

#include <cstddef>
#include <vector>

#include "frameworks/native/sizes.h"
#include "program/kernel.h"

namespace shardplan {

std::vector<Kernel> native_embedding(const Native& n);
std::vector<Kernel> native_embedding_backward(const Native& n);
std::vector<Kernel> native_block_forward(const Native& n);
/// Under selective checkpointing with what is made again.
std::vector<Kernel> native_block_backward(const Native& n);
/// The last norm, the logits chunk by chunk and their way back.
std::vector<Kernel> native_head(const Native& n);
/// Clipping and AdamW over what the rank owns.
std::vector<Kernel> native_update(const Native& n);

/// Of a perceptron's layer.
std::vector<Kernel> native_layer_forward(const Native& n, std::size_t layer);
std::vector<Kernel> native_layer_backward(const Native& n, std::size_t layer);

}  // namespace shardplan
