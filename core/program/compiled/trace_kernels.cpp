// Kernels that a model's own code starts: Liger's. Dynamo makes one node of each call, which
// Inductor neither fuses nor computes again. Their mutations are read from the kernel's code
// (torch/_higher_order_ops/triton_kernel_wrap.py, identify_mutated_tensors), where scalars are
// taken for constants: Liger's norms and gates convert theirs (`eps.to(tl.float32)`), which a
// constant cannot, so that PyTorch 2.11 takes every tensor they are given for one that they write
// to, and copies those that it may not change. Rotation and loss run outside (compiled/breaks.h).
// Seen in the wrappers that PyTorch 2.11 writes for liger_kernel 0.8.5.
#include <algorithm>

#include "base/checked.h"
#include "program/compiled/trace.h"
#include "program/tape/int8_product.h"
#include "program/tape/loss_chunks.h"

namespace shardplan::compiled {

void Trace::kernel(std::size_t i) {
  switch (view_.graph().ops()[i].kind) {
    case OpKind::gated:
      return gate_kernel(i);
    case OpKind::rotary:
      return rotary_kernel(i);
    case OpKind::fused_linear_loss:
      return loss_kernel(i);
    default:
      return norm_kernel(i);
  }
}

void Trace::kernel_backward(std::size_t i, NodeId g) {
  switch (view_.graph().ops()[i].kind) {
    case OpKind::gated:
      return gate_kernel_backward(i, g);
    case OpKind::rotary:
      return rotary_kernel_backward(i, g);
    case OpKind::fused_linear_loss:
      return loss_kernel_backward(i);
    default:
      return norm_kernel_backward(i, g);
  }
}

/// An input of the graph is copied first, and the copy back into it: both are kept, the copy to be
/// read, the input to be written to.
void Trace::norm_kernel(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  const NodeId x = read(i, 0);
  const NodeId copied = is_given(x) ? pointwise({x}, graph.at(x).elements, graph.at(x).type) : x;
  of(op.out) = call({copied, parameter(op.weight)}, count(op.out), view_.state(op.out).dtype);
  const NodeId roots = further(of(op.out), elements(op.side, view_.sizes()), DType::f32);
  sides_[i] = {copied, roots, kNone};
}

/// Equal expressions are one: of norms that do not write over their gradients all zeros of a graph,
/// whose copies are made together.
NodeId Trace::zeros(std::int64_t elements, DType type) {
  for (const NodeId known : zeros_) {
    const Node& node = graph.at(known);
    if (node.part == part() && node.elements == elements && node.type == type) return known;
  }
  zeros_.push_back(pointwise({}, elements, type));
  graph.at(zeros_.back()).realized = true;
  return zeros_.back();
}

/// The gradient is given twice, as what is read and as what is written: one of them is a copy, both
/// are where it comes from outside of the graph or is another value's too.
void Trace::norm_kernel_backward(std::size_t i, NodeId g) {
  const Op& op = view_.graph().ops()[i];
  g = taken_from_heads(g);
  const std::int64_t n = count(op.out);
  const DType type = graph.at(g).type;
  const NodeId x = reads_[i][0];
  const auto [copied, roots, unused] = sides_[i];
  static_cast<void>(unused);
  const bool fresh = op.fused->gradients == GradientPlace::fresh;
  const NodeId written = pointwise({fresh ? zeros(n, type) : g}, n, type);
  const bool shared = std::count(gradients_.begin(), gradients_.end(), g) > 1;
  const NodeId read = is_given(g) || shared ? pointwise({g}, n, type) : g;
  // What others do with it afterwards, they do with the copy.
  if (is_given(g) && shared) std::replace(gradients_.begin(), gradients_.end(), g, read);
  const NodeId made =
      call({written, read, copied, x == copied ? kNone : x, roots, parameter(op.weight)}, n, type,
           written);
  if (view_.trains(op.weight)) {
    const std::int64_t width = view_.parameter(op.weight).numel;
    const std::int64_t rows = checked_mul(op.fused->partial_sums, options_.multiprocessors);
    const NodeId sums = further(made, checked_mul(rows, width), DType::f32);
    give_parameter(op.weight, cast(add(NodeKind::reduction, {sums}, width, DType::f32),
                                   view_.parameter_type(op.weight)));
  }
  if (view_.state(op.in[0]).needs_grad) give(i, 0, made);
}

/// Rows of slices are copied together before.
void Trace::gate_kernel(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  const std::int64_t n = count(op.out);
  for (std::size_t k = 0; k < 2; ++k) {
    const NodeId x = read(i, k);
    if (graph.at(x).elements != n) reads_[i][k] = pointwise({x}, n, graph.at(x).type);
  }
  of(op.out) = call({reads_[i][0], reads_[i][1]}, n, view_.state(op.out).dtype);
}

/// Over copies of what was kept, for which Inductor takes the memory of that itself.
void Trace::gate_kernel_backward(std::size_t i, NodeId g) {
  const Op& op = view_.graph().ops()[i];
  const std::int64_t n = count(op.out);
  const auto [gate, up, unused] = reads_[i];
  static_cast<void>(unused);
  const NodeId first = call({g, gate, up}, n, graph.at(gate).type, gate);
  const NodeId second = further(first, n, graph.at(up).type, up);
  if (view_.state(op.in[0]).needs_grad) give(i, 0, first);
  if (view_.state(op.in[1]).needs_grad) give(i, 1, second);
}

/// Written over the projection, but for a slice, which is copied.
void Trace::rotary_kernel(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  const std::int64_t n = count(op.out);
  const NodeId x = read(i, 0);
  of(op.out) = call({x}, n, graph.at(x).type, graph.at(x).elements == n ? x : kNone);
}

/// Over the gradient where that lies token by token; one that lies head by head is copied.
void Trace::rotary_kernel_backward(std::size_t i, NodeId g) {
  const NodeId over = graph.at(g).by_heads ? kNone : g;
  give(i, 0, call({g}, graph.at(g).elements, graph.at(g).type, over));
}

/// AOTAutograd traces gradients as lying head by head, as their shape says: one that lies token by
/// token is copied before the graph is called (torch/_functorch/_aot_autograd/runtime_wrappers.py),
/// which copies it back to multiply it.
NodeId Trace::taken_from_heads(NodeId g) {
  const Node& given = graph.at(g);
  if (!options_.breaks || given.op == kNone || given.part == part()) return g;
  const OpKind maker = view_.graph().ops()[static_cast<std::size_t>(given.op)].kind;
  if (maker != OpKind::rotary && maker != OpKind::sdpa) return g;
  const std::int64_t n = given.elements;
  const DType type = given.type;
  const NodeId turned = given.by_heads ? g : call({g}, n, type);
  return pointwise({turned}, n, type);
}

/// Of each graph its own, from the boolean one that all are given.
NodeId Trace::attention_mask(const Op& op, DType type) {
  if (!options_.breaks || !options_.masked || !op.causal) return kNone;
  return pointwise({}, elements({1, op.work.scale}, view_.sizes()), type);
}

/// Liger makes both gradients in the forward pass: the loss's own call is the last one
/// (compiled/loss.h).
void Trace::loss_kernel(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  const NodeId x = read(i, 0);
  const tape::LossChunks chunks(view_, op);
  const std::int64_t rows = checked_mul(chunks.tokens, chunks.width);
  const Parameter& head = view_.parameter(op.weight);
  const bool trains = view_.trains(op.weight);
  const NodeId inputs = call({x}, rows, graph.at(x).type);
  const NodeId weights =
      trains ? further(inputs, head.numel, view_.parameter_type(op.weight)) : kNone;
  sides_[i] = {inputs, weights, kNone};
  of(op.out) = call({x, inputs, weights}, count(op.out), DType::f32);
}

void Trace::loss_kernel_backward(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  const auto [inputs, weights, unused] = sides_[i];
  static_cast<void>(unused);
  const NodeId g = gradients_[static_cast<std::size_t>(op.out)];
  const NodeId made = call({g, inputs}, graph.at(inputs).elements, graph.at(inputs).type, inputs);
  if (weights != kNone) {
    const NodeId handed =
        call({g, weights}, graph.at(weights).elements, graph.at(weights).type, weights);
    graph.at(handed).gradient_of = op.weight;
  }
  if (view_.state(op.in[0]).needs_grad) give(i, 0, made);
}

/// bitsandbytes' function of autograd, which runs outside of the graphs (compiled/breaks.h) and
/// keeps what it has read.
void Trace::int8_linear(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  const NodeId x = read(i, 0);
  of(op.out) =
      call({x, parameter(op.weight), parameter(op.bias)}, count(op.out), view_.state(op.out).dtype);
  graph.at(of(op.out)).workspace = tape::int8_bytes(view_, op);
}

void Trace::int8_linear_backward(std::size_t i, NodeId g) {
  const Op& op = view_.graph().ops()[i];
  if (!view_.state(op.in[0]).needs_grad) return;
  const NodeId x = reads_[i][0];
  const NodeId made = call({g, x, parameter(op.weight)}, graph.at(x).elements, graph.at(x).type);
  graph.at(made).workspace = tape::widened_int8_bytes(view_, op);
  give(i, 0, made);
}

}  // namespace shardplan::compiled
