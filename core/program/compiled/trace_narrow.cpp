// Linears whose operands are cast to fewer bits, as torchao's are traced: the casts are operations
// among others, which the partitioner may compute again (torchao 0.18, float8/float8_linear.py).
#include <algorithm>

#include "program/compiled/trace.h"

namespace shardplan::compiled {
namespace {

/// Columns of a weight's gradient, which are those of the linear's input.
std::int64_t inputs_of(const Parameter& weight) {
  return weight.shape.back();
}

}  // namespace

/// The largest of a tensor, or of each of its rows or columns, and the cast with the scale that
/// follows from it: once for all that read it, in each layout once.
NodeId Trace::narrowed(NodeId from, std::int64_t width, Layout layout) {
  const ProductRecipe& recipe = view_.recipe();
  NodeId scale = kNone;
  for (const Narrowed& known : narrowed_) {
    if (known.from != from || graph.at(known.made).part != part()) continue;
    if (known.layout == layout) return known.made;
    // What a linear reads has another shape in its backward pass, and is taken for another tensor.
    const bool same = graph.at(from).kind == NodeKind::input || known.in_backward == in_backward_;
    if (!recipe.by_rows && same) scale = known.scale;
  }
  realized(from);
  const std::int64_t n = graph.at(from).elements;
  const std::int64_t scales = !recipe.by_rows ? 1 : layout == Layout::rows ? n / width : width;
  if (scale == kNone) {
    scale = add(NodeKind::reduction, {from}, scales, DType::f32);
    graph.at(scale).across = !recipe.by_rows || layout == Layout::turned;
  }
  const NodeId made = pointwise({from, scale}, n, recipe.type);
  graph.at(made).by_columns = recipe.by_rows && layout == Layout::turned;
  narrowed_.push_back({from, layout, scale, made, in_backward_});
  return made;
}

/// Products that are scaled by rows and columns afterwards make gradients read more than four
/// tensors, of which Inductor makes no part of each kernel that reads them (torch/_inductor/ir.py,
/// mark_reuse; a product without fast accumulation is scaled so).
NodeId Trace::realized(NodeId id) {
  Node& node = graph.at(id);
  const bool inner = node.inputs == 1 && graph.at(node.in[0]).realized;
  node.realized = node.realized || (view_.recipe().by_rows && node.backward && !inner &&
                                    node.kind == NodeKind::pointwise);
  return id;
}

/// It has a buffer in fp32 then, beside three narrow copies that are made while the activations are
/// there. Seen in the wrappers of PyTorch 2.11.
NodeId Trace::gate_gradient(NodeId g, NodeId x, DType type) {
  const std::int64_t n = graph.at(x).elements;
  const bool by_rows = view_.recipe().by_rows;
  const NodeId made = realized(pointwise({g, x}, n, by_rows ? DType::f32 : type));
  if (by_rows) graph.at(made).workspace = 3 * n;
  return made;
}

/// A weight that FSDP2 has gathered in fp8 is a tensor subclass, which AOTAutograd unwraps into
/// data and scale. Which arguments live beyond the step is still told by their places before that
/// (PyTorch 2.11, static_lifetime_input_indices), so that the partitioner takes most such weights
/// for activations: of these it keeps the copy that the backward pass multiplies by. Seen in the
/// graphs of PyTorch 2.11 and in a run on two H200.
void Trace::find_unwrapped() {
  std::vector<ParameterId> arguments{kNone};  // in the order they are read in; kNone: no parameter
  std::set<std::int32_t> shared;
  std::set<ParameterId> narrow;
  for (const Op& op : view_.graph().ops()) {
    for (std::size_t k = 0; tape::GraphView::reads(op, k); ++k) {
      const std::int32_t read = view_.state(op.in[k]).shared;
      if (read != kNone && shared.insert(read).second) arguments.push_back(kNone);
    }
    for (const ParameterId id : {op.weight, op.bias})
      if (id != kNone && std::find(arguments.begin(), arguments.end(), id) == arguments.end())
        arguments.push_back(id);
    if (op.weight != kNone && view_.has_narrow_weight(op)) narrow.insert(op.weight);
  }
  std::size_t place = 0;
  for (const ParameterId id : arguments) {
    const bool stays = place < arguments.size() && arguments[place] != kNone;
    if (narrow.contains(id) && !stays) unwrapped_.insert(id);
    place += narrow.contains(id) ? 2U : 1U;
  }
}

void Trace::narrow_linear(std::size_t i, NodeId x) {
  const Op& op = view_.graph().ops()[i];
  const Parameter& weight = view_.parameter(op.weight);
  const NodeId w = parameter(op.weight);
  sides_[i][0] = w;
  const NodeId rows = narrowed(x, inputs_of(weight), Layout::rows);
  const NodeId cast =
      view_.has_narrow_weight(op) ? w : narrowed(w, inputs_of(weight), Layout::rows);
  const NodeId product =
      add(NodeKind::product, {rows, cast}, count(op.out), view_.state(op.out).dtype);
  of(op.out) = op.bias == kNone ? product
                                : pointwise({product, parameter(op.bias)}, count(op.out),
                                            view_.state(op.out).dtype);
}

NodeId Trace::narrow_input_product(std::size_t i, NodeId g) {
  const Op& op = view_.graph().ops()[i];
  const Parameter& weight = view_.parameter(op.weight);
  // Inductor casts the gradient in both orders at once.
  if (view_.trains(op.weight)) narrowed(g, weight.numel / inputs_of(weight), Layout::turned);
  const NodeId rows = narrowed(g, weight.numel / inputs_of(weight), Layout::rows);
  // A weight that comes cast is copied into the order of a second operand.
  const NodeId w = sides_[i][0];
  const NodeId turned = view_.has_narrow_weight(op)
                            ? pointwise({w}, weight.numel, view_.recipe().type)
                            : narrowed(w, inputs_of(weight), Layout::turned);
  return add(NodeKind::product, {rows, turned}, count(op.in[0]), graph.at(reads_[i][0]).type);
}

NodeId Trace::narrow_weight_product(const Op& op, NodeId g, NodeId x) {
  const Parameter& weight = view_.parameter(op.weight);
  const NodeId turned = narrowed(g, weight.numel / inputs_of(weight), Layout::turned);
  return add(NodeKind::product, {turned, narrowed(x, inputs_of(weight), Layout::turned)},
             weight.numel, graph.at(g).type);
}

}  // namespace shardplan::compiled
