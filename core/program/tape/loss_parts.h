// Head and cross-entropy over parts of the rows, each with its backward pass within the forward
// pass (DeepSpeed's TiledFusedLogitsLoss, kernels/tiled_loss.cpp).
#pragma once

#include "program/tape/kernel_list.h"
#include "program/tape/parts.h"

namespace shardplan::tape {

/// Leaves the gradients of the input and of the weight, if autograd is on: fused_loss_backward
/// hands them on.
void loss_parts_forward(Parts& p, std::size_t i);

/// `keeps`: with both gradients.
KernelList loss_parts_kernels(const GraphView& view, const Op& op, bool keeps);

}  // namespace shardplan::tape
