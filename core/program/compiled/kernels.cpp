#include "program/compiled/kernels.h"

#include <algorithm>
#include <optional>

#include "program/compiled/padding.h"
#include "program/compiled/trace.h"
#include "program/tape/int8_product.h"
#include "program/tape/kernels.h"
#include "program/tape/widened.h"

namespace shardplan::compiled {
namespace {

double moved(const Node& node) {
  return static_cast<double>(node.elements) * static_cast<double>(size_of(node.type));
}

/// Under a mask the kernel computes the whole square.
Kernel attention_of(const Node& node, const Op& op, const tape::GraphView& view, bool masked) {
  Kernel kernel = tape::attention_kernel(view, op, node.type);
  kernel.masked = kernel.masked || (op.causal && masked);
  kernel.causal = kernel.causal && !kernel.masked;
  if (node.backward) kernel.kind = KernelKind::attention_backward;
  return kernel;
}

/// The kernel of a product whose operands are copies with longer rows, and that of the weight's.
tape::KernelList with_aligned_operands(const Node& node, Kernel product) {
  tape::KernelList list;
  if (node.workspace > 0)
    list.add(tape::memory_kernel(KernelKind::triton_pointwise, Issue::nested, product.type,
                                 2 * static_cast<double>(node.workspace),
                                 static_cast<double>(node.workspace / size_of(product.type))));
  for (std::int64_t* width : {&product.m, &product.n, &product.k})
    *width = padded_columns(*width, product.type);
  list.add(product);
  return list;
}

/// What a model's own code starts; also copies outside of the graphs.
tape::KernelList kernel_of(const Node& node, const Op& op, const tape::GraphView& view) {
  const auto copy = [&] {
    return tape::memory_kernel(KernelKind::strided, node.backward ? Issue::autograd : Issue::python,
                               node.type, 2 * moved(node), static_cast<double>(node.elements));
  };
  tape::KernelList list;
  if (node.further || node.gradient_of != kNone) return list;
  if (view.multiplies_int8(op)) {
    if (!node.backward) return tape::int8_kernels(view, op);
    list = tape::int8_widening(view, op, Issue::autograd);
    if (const auto product = tape::linear_backward_kernels(view, op, node.type).input)
      list.add(*product);
    return list;
  }
  if (op.fused == nullptr) {
    if (op.kind == OpKind::linear && view.parameter(op.weight).widened() && !node.backward)
      return tape::widening_kernels(view, op, Issue::nested);
    list.add(copy());
    return list;
  }
  // The loss's own call makes the gradients too.
  if (op.kind == OpKind::fused_linear_loss && !node.backward && node.elements > 1) return list;
  list = node.backward ? tape::backward_kernels(view, op)
                       : tape::forward_kernels(view, op, node.type, true);
  if (node.backward && op.kind == OpKind::rotary && node.over == kNone) list.add(copy());
  return list;
}

/// What a product by rows and columns leaves is scaled behind it, a weight's gradient by a kernel
/// of its own, in its place. The scales' divisions, below, are made for each element: 4.8 to 5.0 ps
/// where other kernels take 1.2 (14 kernels of four sizes).
Kernel scaled_gradient(const Node& node) {
  constexpr double kDivisions = 3;
  return tape::memory_kernel(KernelKind::triton_pointwise, Issue::nested, node.type,
                             2 * moved(node),
                             (1 + kDivisions) * static_cast<double>(node.elements));
}

/// What some calls of libraries take of the host over others' 20 us: addmm hands a bias to
/// cuBLASLt, which is described the product and asked for an algorithm each time
/// (aten/src/ATen/cuda/ CUDABlas.cpp, gemm_and_bias), 15 to 25 us more in three profiled steps;
/// cuDNN's attention is three kernels backward, and takes 20 us more in the mean of both passes
/// (data/measurements/rates/h200/h200-profiled-steps.json).
Kernel longer_call(DType type) {
  Kernel call = tape::call_kernel(Issue::loop, type);
  call.calls = 2;
  return call;
}

tape::KernelList call_of(const JointGraph& graph, const Node& node, const tape::GraphView& view,
                         bool masked) {
  tape::KernelList list;
  if (node.op == kNone) return list;
  const Op& op = view.graph().ops()[static_cast<std::size_t>(node.op)];
  if (node.kind == NodeKind::kernel) return kernel_of(node, op, view);
  if (node.kind == NodeKind::attention) {
    const Node& first = graph.at(node.in[0]);
    const bool further =
        first.kind == NodeKind::attention && first.op == node.op && first.backward == node.backward;
    if (!further) {
      list.add(attention_of(node, op, view, masked));
      list.add(longer_call(node.type));
    }
    return list;
  }
  if (op.kind == OpKind::sdpa) {  // as math: one of its products
    Kernel product = tape::attention_kernel(view, op, node.type);
    product.kind = KernelKind::product;
    product.causal = product.masked = false;
    list.add(product);
    return list;
  }
  if (op.kind == OpKind::matmul) {
    list.add(tape::batched_product_kernel(view, op, node.type));
    return list;
  }
  if (op.kind != OpKind::linear && op.kind != OpKind::grouped_linear) return list;
  if (!node.backward) {
    if (node.aligned) return with_aligned_operands(node, tape::product_kernel(view, op, node.type));
    list = tape::widening_kernels(view, op, Issue::nested);
    list.add(tape::product_kernel(view, op, node.type));
    if (op.bias != kNone) list.add(longer_call(node.type));
    return list;
  }
  const tape::LinearBackwardKernels both = tape::linear_backward_kernels(view, op, node.type);
  const std::optional<Kernel>& kernel = node.of_weight ? both.weight : both.input;
  if (kernel && node.aligned) return with_aligned_operands(node, *kernel);
  if (kernel) list.add(*kernel);
  if (node.of_weight && view.multiplies_narrow(op) && view.recipe().by_rows)
    list.add(scaled_gradient(node));
  return list;
}

/// torchao divides by a largest value in fp64 (float8_utils.py, amax_to_scale). Inductor does that
/// for each element anew where a kernel goes over a gradient's rows and scales its columns too: 5.1
/// to 6.0 ps where other reductions take 0.9 (a profiled step of Mistral by rows, on an H200).
double divided(const JointGraph& graph, const Unit& unit) {
  if (!unit.reduces) return 0;
  constexpr double kElements = 5;
  std::int64_t elements = 0;
  for (const NodeId id : unit.writes)
    if (graph.at(id).by_columns) elements += graph.at(id).elements;
  return kElements * static_cast<double>(elements);
}

/// Elements more that a kernel goes over for rows that are longer than a block, which are read in a
/// loop, and exponentiated twice: 1.6 to 2.3 ps (of losses in profiled steps of GPT-2, ModernBERT
/// and Gemma 3) where other reductions take 0.9. Attention's are masked twice as well, 2.6 ps; its
/// backward kernel takes no longer than what it moves (48 and 24 kernels of a profiled BLOOM).
std::int64_t of_long_rows(const JointGraph& graph, const Unit& unit, const tape::GraphView& view) {
  constexpr std::int64_t kLongRow = 1024;
  bool loss = false, scores = false, backward = false;
  for (const Made& made : unit.nodes) {
    const Node& node = graph.at(made.id);
    if (node.op == kNone) continue;
    const Op& op = view.graph().ops()[static_cast<std::size_t>(node.op)];
    const Extent extent = view.extent_of(op.out);
    if (op.kind == OpKind::log_softmax) loss = loss || extent.per > kLongRow;
    if (op.kind != OpKind::softmax && op.kind != OpKind::softmax_f32) continue;
    const std::int64_t rows = rows_of(extent, view.sizes());
    scores = scores || elements(extent, view.sizes()) > kLongRow * rows;
    backward = backward || node.backward;
  }
  if (loss) return unit.span;
  return scores && !backward ? unit.span + unit.span / 2 : 0;
}

/// Elements more that a kernel goes over for what its instructions take. A dropout's mask: Philox
/// for each element, 5.5 ps on an H200 (profiled steps of RoBERTa and GPT-2). A mask of positions:
/// four 64-bit ones are read for each element, two of them where the others say; what makes one
/// step of GPT-Neo as long as measured (h200-1x-hf-gpt-neo-125m-compile-autocast-ckpt-b4-s1536).
double computed(const JointGraph& graph, const Unit& unit, const tape::GraphView& view) {
  constexpr std::int64_t kDraw = 5, kLookUp = 4;
  std::int64_t elements = of_long_rows(graph, unit, view);
  for (const Made& made : unit.nodes) {
    const Node& node = graph.at(made.id);
    if (node.kind == NodeKind::random) elements += kDraw * node.elements;
    if (node.masked_by_positions) elements += kLookUp * node.elements;
  }
  return static_cast<double>(elements);
}

/// Over what the first kernel's blocks have found, a kernel for each such result: 16 to 64 for each
/// column, 64 to 4,096 of a whole tensor. They take the least that a kernel takes.
std::optional<Kernel> second_reductions(const JointGraph& graph, const Unit& unit) {
  constexpr double kBlocks = 32;
  std::int64_t most = 0;
  std::int32_t calls = 0;
  for (const NodeId id : unit.writes) {
    if (!graph.at(id).across) continue;
    most = std::max(most, graph.at(id).elements);
    ++calls;
  }
  if (calls == 0) return std::nullopt;
  const DType type = graph.at(unit.writes.front()).type;
  const double elements = kBlocks * static_cast<double>(most);
  Kernel kernel = tape::memory_kernel(KernelKind::triton_reduction, Issue::nested, type,
                                      elements * static_cast<double>(size_of(type)), elements);
  kernel.calls = calls;
  return kernel;
}

}  // namespace

tape::KernelList kernels_of(const JointGraph& graph, const Unit& unit, const tape::GraphView& view,
                            bool masked) {
  const Node& made = graph.at(unit.writes.front());
  tape::KernelList list;
  if (traits_of(made.kind).call) {
    list = call_of(graph, made, view, masked);
  } else {
    double bytes = static_cast<double>(unit.workspace);
    for (const NodeId id : unit.reads) bytes += moved(graph.at(id));
    for (const NodeId id : unit.writes) bytes += moved(graph.at(id));
    const bool scatters = std::any_of(unit.writes.begin(), unit.writes.end(), [&](NodeId id) {
      return graph.at(id).kind == NodeKind::scatter;
    });
    const KernelKind kind = scatters       ? KernelKind::embedding_backward
                            : unit.reduces ? KernelKind::triton_reduction
                                           : KernelKind::triton_pointwise;
    list.add(tape::memory_kernel(
        kind, Issue::nested, made.type, bytes,
        static_cast<double>(unit.span) + divided(graph, unit) + computed(graph, unit, view)));
    if (const auto further = second_reductions(graph, unit)) list.add(*further);
  }
  tape::KernelList issued;
  for (Kernel kernel : list) {
    // A line of the function that Inductor writes, or eager.
    const bool written = unit.part != kNone || made.kind != NodeKind::kernel;
    if (written && kernel.kind != KernelKind::none) kernel.issue = Issue::nested;
    issued.add(kernel);
  }
  return issued;
}

}  // namespace shardplan::compiled
