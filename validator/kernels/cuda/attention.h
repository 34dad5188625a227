// Attention: the operation, and its implementations. All keep the same tensors for the
// backward pass (the output and the log-sum-exp), so they can be exchanged.
#pragma once

#include <memory>
#include <string>

#include "device/operands.h"
#include "kernels/cuda/launch.h"

namespace shardplan::validator::cuda {

class Attention {
 public:
  virtual ~Attention() = default;
  virtual std::string name() const = 0;
  virtual bool supports(DType dtype, const Heads& heads, const OtherKeys& others) const = 0;
  virtual void forward(const Launch& launch, const AttentionForward& o) = 0;
  virtual void backward(const Launch& launch, const AttentionBackward& o) = 0;
};

/// cuDNN's fused attention, for bf16 and fp16; null in a build without cudnn-frontend's headers.
std::unique_ptr<Attention> make_cudnn_attention();
/// Scratch of cuDNN's backward pass; 0 where it is not used.
std::int64_t cudnn_attention_workspace(DType dtype, const Heads& heads);

/// Our own kernels on the tensor cores, for bf16 and fp16 and heads of at most 128 elements.
std::unique_ptr<Attention> make_flash_attention();

/// Any type and any head of at most 256 elements, a warp a row: exact and slow.
std::unique_ptr<Attention> make_simple_attention();

/// Scratch of the two above: one float a query.
std::int64_t attention_workspace(const Heads& heads);

}  // namespace shardplan::validator::cuda
