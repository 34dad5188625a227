// Operations that a fused kernel runs (kernels/description.h): what each allocates, keeps and
// frees, and the kernels that the loss is made of. `i` is the operation's index in its graph.
#pragma once

#include "program/tape/kernel_list.h"
#include "program/tape/parts.h"

namespace shardplan::tape {

/// Gradients of the inputs where the description says they are written, then of the parameters.
/// `g`: of the result. For all but the loss that is fused with the head.
void fused_kernel_backward(Parts& p, std::size_t i, StorageId g);

/// Liger's fused linear cross-entropy (ops/fused_linear_cross_entropy.py of 0.8.5): the gradients
/// of the input and of the head's weight, in their types, are there from the beginning and kept
/// for the backward pass. Chunk of tokens after chunk the logits, over which the kernel writes
/// their gradient; products add to both results in place. Under autocast, where types differ,
/// products read casts of the weight and have results of their own.
void fused_loss_forward(Parts& p, std::size_t i);
/// Both gradients were made in the forward pass: they are handed on.
void fused_loss_backward(Parts& p, std::size_t i);

/// FusedKernel::host_reads, before the kernels of either pass: the GPU has done all so far, and
/// what follows starts from an idle one.
void host_reads_labels(Parts& p);
void host_reads_gradient(Parts& p);

/// `keeps`: with both gradients.
KernelList fused_loss_kernels(const GraphView& view, const Op& op, bool keeps);
/// A loss whose gradients are made already multiplies them by its own where that is not one.
KernelList scaling_kernels(const GraphView& view, const Op& op);

}  // namespace shardplan::tape
