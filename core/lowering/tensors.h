// Sums over a model's parameter tensors, as separate allocations of the caching allocator.
#pragma once

#include <cstdint>

#include "model/model.h"
#include "plan/plan.h"
#include "program/program.h"

namespace shardplan {

/// What an optimizer keeps for the parameters it updates, and what its step needs on top.
struct OptimizerMemory {
  std::int64_t states = 0;          ///< resident after the first step
  std::int64_t step_transient = 0;  ///< at the worst moment of the step
};

/// Bytes of one parameter as it is stored, rounded to the allocation unit. Four-bit weights are
/// packed two a byte, with an fp32 scale a block of 64, or, quantized twice, one byte a block and
/// an fp32 scale a 256 blocks (bitsandbytes/functional.py).
std::int64_t stored_bytes(const Parameter& parameter, DType type, Quantization quantization);

/// Bytes of all parameters as built: base weights in `precision.params`, LoRA matrices in fp32.
std::int64_t parameter_bytes(const Model& model, const Plan& plan);

/// Bytes of the trainable parameters in `type`, every tensor rounded to 512.
std::int64_t trainable_bytes(const Model& model, DType type);

/// States and temporaries of PyTorch's optimizers over separate tensors (torch/optim/*.py):
/// models-and-activations.md section 5 lists them.
OptimizerMemory optimizer_memory(const Model& model, const Optimizer& optimizer, DType states);

/// Bytes of state per element for optimizers whose states are as large as their parameters.
std::int64_t state_bytes_per_element(const Optimizer& optimizer, DType states);

/// Temporaries of clip_grad_norm_ with foreach: one fp32 a tensor and one a chunk of 65,536
/// elements of the largest tensor, for every tensor (aten/src/ATen/native/cuda/ForeachReduceOp.cu).
std::int64_t clipping_transient(const Model& model);

/// Token ids (int64) of one micro-batch.
std::int64_t batch_bytes(const Plan& plan);

/// The workspaces of cuBLAS: one of the forward thread, one of autograd's (CublasHandlePool.cpp).
std::int64_t cublas_workspaces(const Gpu& gpu);

/// The numel of the largest trainable tensor.
std::int64_t largest_trainable(const Model& model);

}  // namespace shardplan
