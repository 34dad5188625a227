// What clipping and the optimizer's step start on the GPU.
#pragma once

#include <vector>

#include "lowering/tensors.h"
#include "optimizers/states.h"
#include "plan/plan.h"
#include "program/kernel.h"

namespace shardplan {

/// What clipping computes for an element in each of its two passes, of what a fused update does:
/// gradients of 16 bits take that long, and not as long as their bytes (12 rows of
/// h200-kernels.json).
inline constexpr double kClippingWork = 0.2;

/// torch.nn.utils.clip_grad_norm_ over `owned`: the norms read every gradient once, the scaling
/// reads and writes it (torch/nn/utils/clip_grad.py). `issue`: listed, or sharded for DTensors.
std::vector<Kernel> clipping_kernels(const std::vector<OwnedTensor>& owned, DType gradients,
                                     Issue issue = Issue::listed);

/// A step of `optimizer` over separate tensors or shards of them.
std::vector<Kernel> optimizer_kernels(const std::vector<OwnedTensor>& owned,
                                      const Optimizer& optimizer, const Precision& precision,
                                      Given given);

/// The products of one tensor's update, `count` times.
std::vector<Kernel> product_kernels(const Updated& tensor, std::int64_t count,
                                    const Optimizer& optimizer, const StateTypes& types);

/// One kernel that moves `bytes`: what flat buffers are updated, copied or cast with.
Kernel sweep(double bytes, DType type, std::int32_t tensors = 1, Issue issue = Issue::listed);

}  // namespace shardplan
