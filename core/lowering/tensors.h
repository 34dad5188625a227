// Sums over a model's parameter tensors, as separate allocations of the caching allocator.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

/// Bytes of all parameters as built: base weights in `precision.params`, LoRA matrices in fp32.
std::int64_t parameter_bytes(const Model& model, const Plan& plan);

/// Bytes of the trainable parameters in `type`, LoRA matrices in `adapters`, every tensor rounded
/// to 512.
std::int64_t trainable_bytes(const Model& model, DType type, DType adapters);

/// What an optimizer updates of one parameter tensor, or of `count` alike.
struct OwnedTensor {
  const Parameter* parameter = nullptr;
  std::int64_t numel = 0;
  std::int64_t count = 1;
};

/// Rank 0's shard of every trainable tensor (shard_elements).
std::vector<OwnedTensor> trainable_shards(const Model& model, std::int64_t ranks);
/// The same where tensors are cut each in its own way: `part` gives the elements of one.
std::vector<OwnedTensor> trainable_parts(const Model& model,
                                         const std::function<std::int64_t(const Parameter&)>& part);

/// A tensor as large as each trainable parameter.
std::vector<Event> trainable_tensors(const Model& model, Category category,
                                     std::int64_t bytes_each);

/// Emits the allocation of a list, block by block; what stands as often beside each other is of the
/// same layers, which come one after the other.
void emit_allocs(ProgramBuilder& b, const std::vector<Event>& tensors);

/// Appends `count` blocks of `bytes` to a list of residents.
void append_tensors(std::vector<Event>& list, Category category, std::int64_t bytes,
                    std::int64_t count);
/// Appends all parameters as built, a block a tensor.
void append_parameters(std::vector<Event>& list, const Model& model, const Plan& plan);
/// Appends those of them that do not train.
void append_frozen_parameters(std::vector<Event>& list, const Model& model, const Plan& plan);

/// Elements of each parameter that trains, in the order in which they are registered, layer by
/// layer.
std::vector<std::int64_t> trainable_in_order(const Model& model);

/// Elements that a rank holds of a tensor cut along its first dimension, padding included.
std::int64_t shard_elements(const Parameter& p, std::int64_t ranks);

/// How many parameters train.
std::int64_t trainable_tensors(const Model& model);

/// Temporaries of clip_grad_norm_ with foreach: one fp32 a tensor and one a chunk of 65,536
/// elements of the largest tensor, for every tensor (aten/src/ATen/native/cuda/ForeachReduceOp.cu).
std::int64_t clipping_transient(const Model& model);

/// Token ids (int64) of one micro-batch.
std::int64_t batch_bytes(const Plan& plan);

/// The numel of the largest trainable tensor.
std::int64_t largest_trainable(const Model& model);

}  // namespace shardplan
