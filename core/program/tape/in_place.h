// The backward pass of sums that are written over a part of a tensor, or over a view of it.
#pragma once

#include "program/tape/kernel_list.h"
#include "program/tape/parts.h"

namespace shardplan::tape {

/// Whether autograd differentiates the operation through the tensor whose view was written
/// (CopySlices): other in-place sums pass their gradient on.
bool writes_view(const Op& op);

/// Hands on the gradients of such a sum; lets go of that of its result.
void written_view_backward(Parts& p, const Op& op);

/// The kernels of that.
KernelList written_view_kernels(const GraphView& view, const Op& op);

}  // namespace shardplan::tape
