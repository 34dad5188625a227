// One GPU kernel of a step as the time model sees it: what it computes, how many bytes it moves and
// which call starts it. Sizes only; how long it takes is timing/kernel_time.h's to say.
#pragma once

#include <cstdint>
#include <string_view>

#include "formats/dtype.h"

namespace shardplan {

enum class KernelKind : std::uint8_t {
  none,                ///< a call that starts nothing on the GPU: a view
  product,             ///< `batch` products of m×k and k×n
  attention,           ///< fused, forward: `batch` heads of m queries and n keys, k wide
  attention_backward,  ///< fused, with the scores computed again
  elementwise,         ///< over whole tensors of one type, in vectors
  strided,  ///< element by element: broadcasts, slices, copies to another layout, widening
  concatenate,
  row_reduction,  ///< over the last dimension
  column_sum,     ///< over all rows: a bias's gradient
  layer_norm,
  layer_norm_backward,
  softmax,
  softmax_backward,
  log_softmax_backward,  ///< of a loss over a vocabulary
  embedding,
  embedding_backward,
  multi_tensor,  ///< one of a list of tensors: fused and foreach optimizers, norms
  /// An optimizer's update with quantized states: a block's largest value, then a search in a table
  /// for each element.
  blockwise_update,
  triton_pointwise,  ///< a kernel that Inductor writes: each element from those at its place
  triton_reduction,  ///< the same with a sum or a largest value of rows or columns on the way
};
inline constexpr std::size_t kKernelKinds = 20;

/// What the host does to start a kernel; each takes its time.
enum class Issue : std::uint8_t {
  python,       ///< a call from a model's forward
  nested,       ///< a further kernel of the same call: a cast of autocast, the second of two
  autograd,     ///< a node of the backward pass
  inner,        ///< a further kernel of a node of the backward pass, which C++ starts
  linear,       ///< a linear layer: its module, its function, its product
  linear_node,  ///< a product of its node of the backward pass, and the nodes around it
  checkpoint,   ///< torch.utils.checkpoint around a forward pass: random states, hooks, contexts
  recompute,    ///< the same around what it runs again
  listed,       ///< one tensor's share of a call over a list of tensors
  sharded,      ///< the same of a list of DTensors
  loop,         ///< a call from a loop over tensors: an optimizer that takes them one by one
  hook,         ///< FSDP2's work around a module: a gather, a reduction
  engine,       ///< a part of DeepSpeed's around stage 3's modules (stage3_calls.h)
  bucket,       ///< DeepSpeed's for a gradient that goes into a bucket (stages 1 and 2)
  module,       ///< a kernel of Megatron Core's or Transformer Engine's modules, in both passes
  waited,       ///< one tensor's update, for which the host then waits: bitsandbytes
  graph,  ///< the first kernel of a compiled graph: its guards and AOTAutograd's wrappers before
  dispatched,    ///< an operation that goes through Python, which asks a checkpoint's policy
  redispatched,  ///< the same where it is computed again, or its kept result is taken
  detached,      ///< a tensor that is saved where it is computed again, under a policy's mode
  fused,         ///< a kernel of Liger's: a function of autograd in Python, and Triton's launcher
  fused_node,    ///< the same in the backward pass
  library,       ///< a product of our engine: cuBLASLt looks its operands over and starts it
  launch,        ///< any other kernel of it
  narrow,        ///< a product of torchao's tensors in fp8, whose operations go through Python
  guard,         ///< what Dynamo checks of the modules that peft puts beside a linear
};
inline constexpr std::size_t kIssues = 26;

std::string_view name_of(KernelKind kind);
std::string_view name_of(Issue issue);

struct Kernel {
  KernelKind kind = KernelKind::none;
  Issue issue = Issue::python;
  DType type = DType::f32;  ///< of what it reads
  bool causal = false;      ///< attention: half of the square is left out
  bool drops = false;       ///< attention: draws random numbers for dropout
  bool masked = false;      ///< attention: reads a mask, which the flash kernel cannot
  bool by_rows = false;     ///< attention: our engine's, a warp a row, where cuDNN has none
  bool adds = false;        ///< product: to what is there, which it reads
  bool sums_rows = false;   ///< product: of two matrices by their rows, as a weight's gradient
  bool uneven = false;      ///< product: m is the mean of calls whose rows differ
  bool recorded = false;    ///< inside a CUDA graph, which starts it: the host does not
  std::int32_t calls = 1;   ///< alike, one after the other
  std::int64_t m = 0, n = 0, k = 0, batch = 1;  ///< row_reduction: m short rows
  std::int64_t key_batch = 0;                   ///< attention: `batch` of keys, which heads share
  double bytes = 0;                             ///< read and written, of one call
  double elements = 0;                          ///< written, or read by a reduction
};

/// Started by our engine itself, not by a framework in Python.
inline bool is_engines(const Kernel& kernel) {
  return kernel.issue == Issue::library || kernel.issue == Issue::launch;
}

/// Multiply-adds count two. Causal attention counts half of its square; its backward pass computes
/// five products of the forward's two, one of them again.
inline double flops_of(const Kernel& kernel) {
  const double cube = 2.0 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
                      static_cast<double>(kernel.k) * static_cast<double>(kernel.batch) *
                      kernel.calls;
  const double square = kernel.causal ? 0.5 : 1.0;
  switch (kernel.kind) {
    case KernelKind::product:
      return cube;
    case KernelKind::attention:
      return 2 * square * cube;
    case KernelKind::attention_backward:
      return 5 * square * cube;
    default:
      return 0;
  }
}

/// The same without what is computed again: what MFU counts.
inline double model_flops_of(const Kernel& kernel) {
  return flops_of(kernel) * (kernel.kind == KernelKind::attention_backward ? 0.8 : 1.0);
}

}  // namespace shardplan
