// Which kernels eager PyTorch starts for an operation and its backward, and the bytes they move
// (tools/autograd/derivatives.yaml, aten/src/ATen/native/cuda). Values of a view in, kernels out.
#pragma once

#include <optional>

#include "program/tape/graph_view.h"
#include "program/tape/kernel_list.h"

namespace shardplan::tape {

/// Widening is not vectorised (aten/src/ATen/native/cuda/CUDALoops.cuh, dynamic casting).
constexpr KernelKind cast_kind(DType from, DType to) {
  return size_of(to) > size_of(from) ? KernelKind::strided : KernelKind::elementwise;
}
/// Rows of `elements` that are each added up by a warp, which takes as long for 256 as for 32 of
/// them (aten/src/ATen/native/cuda/Reduce.cuh); 0: they are long, and what moves is what counts, or
/// so short that a warp has several.
inline std::int64_t short_rows(double elements, double width) {
  constexpr double kWarp = 32, kLong = 512;
  return width < kWarp || width > kLong ? 0 : static_cast<std::int64_t>(elements / width);
}
/// Whether a contraction's second factor lies in the order of tokens. Padding that fills up the
/// chunks of a single sequence copies it to the order of columns, of several it keeps it.
inline bool is_turned(const GraphView& view, const Op& op) {
  const Sizes& sizes = view.sizes();
  return op.contraction && op.contraction->turned &&
         (sizes.batch > 1 || sizes.sequence % view.extent_of(op.out).chunk == 0);
}
Kernel cast_kernel(const GraphView& view, Extent extent, DType from, DType to, Issue issue);
/// Of a whole weight, as autocast makes it.
Kernel weight_cast_kernel(const Parameter& weight, DType from, DType to);
/// The backward of autocast's cast of a small parameter: of its gradient.
Kernel cast_back_kernel(const GraphView& view, ParameterId id, DType from);
/// The weight and bias of a layer norm in 16 bits, which autocast runs in fp32: it casts all
/// tensors of the call, and keeps no copies that are wider (aten/src/ATen/autocast_mode.cpp,
/// cached_cast).
std::vector<ParameterId> widened_parameters(const GraphView& view, const Op& op);
/// Whether autocast casts the bias of a linear.
bool casts_bias(const GraphView& view, const Op& op);

/// y = x·W: m rows, n outputs, k inputs; experts are a batch of products.
Kernel product_kernel(const GraphView& view, const Op& op, DType type);
/// Two activations: elements of both inputs and of the result give the sizes and their batch.
Kernel batched_product_kernel(const GraphView& view, const Op& op, DType type);
/// A head of the fused kernel; its width is the mean of those of keys and values.
Kernel attention_kernel(const GraphView& view, const Op& op, DType type);

/// Experts' products in a type that PyTorch's grouped kernel does not take: the host reads how many
/// rows each expert has and starts one product after the other (aten/src/ATen/native/cuda/
/// GroupedBlas.cpp and GroupedMMUtils.h, _grouped_mm_fallback). autocast does not cast their
/// weights, so that those of an fp32 model are multiplied so (transformers/integrations/moe.py).
bool multiplies_one_by_one(const GraphView& view, const Op& op, DType type);
/// The same product as so many.
Kernel one_by_one(Kernel product);

/// Of an op that computes, but for linear and grouped_linear. `type`: of its first input as it
/// reads it. `keeps`: autograd is on.
KernelList forward_kernels(const GraphView& view, const Op& op, DType type, bool keeps);

/// The backward of linear and grouped_linear: what an exchange may stand between.
struct LinearBackwardKernels {
  std::optional<Kernel> input, weight, bias;
};
LinearBackwardKernels linear_backward_kernels(const GraphView& view, const Op& op, DType type);
/// Of all other ops.
KernelList backward_kernels(const GraphView& view, const Op& op);

// Parts of both passes.
/// What puts rows into the experts' order and back, for each grouped product: numbers and indices,
/// not rows. Nothing where a framework's own kernels do it.
KernelList routing_kernels(const GraphView& view, const Op& op, Issue issue);
KernelList math_attention_kernels(const GraphView& view, const Op& op, Issue issue);
KernelList vocabulary_loss_kernels(const GraphView& view, const Op& op, Issue issue);

}  // namespace shardplan::tape
