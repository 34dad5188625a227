#include "program/compiled/trace.h"

#include <algorithm>
#include <cassert>

#include "program/op_rules.h"

namespace shardplan::compiled {

std::int64_t rows_of(Extent extent, const Sizes& sizes) {
  switch (extent.scale) {
    case Scale::square:
    case Scale::scores:
    case Scale::cross_square:
    case Scale::cross_scores:
      return elements(extent, sizes) / sizes.sequence;
    case Scale::target_square:
    case Scale::target_scores:
      return elements(extent, sizes) / sizes.target;
    default:
      return units(extent, sizes);
  }
}

Trace::Trace(tape::GraphView& view, const TraceOptions& options) : view_(view), options_(options) {
  const Graph& g = view.graph();
  values_.assign(g.values().size(), kNone);
  gradients_.assign(g.values().size(), kNone);
  reads_.assign(g.ops().size(), {kNone, kNone, kNone});
  sides_.assign(g.ops().size(), {kNone, kNone, kNone});
  graph.nodes.reserve(8 * g.ops().size());
  find_unwrapped();
  for (const Input& in : g.inputs()) {
    const bool chained = in.kind == InputKind::chained;
    const bool made = chained && !options.begins_graph;
    of(in.value) = add(made ? NodeKind::chained : NodeKind::input, {}, count(in.value),
                       view_.state(in.value).dtype);
    graph.at(of(in.value)).used_before = !chained && options.shared_before;
    if (!chained) continue;
    input = of(in.value);
    graph.at(input).viewed = options.begins_graph;  // as rows of tokens
    graph.at(input).resident = options.input_again;
  }
  for (std::size_t i = 0; i < g.ops().size(); ++i) forward(i);
  output = g.output() == kNone ? kNone : of(g.output());
  returned = g.returned() == kNone ? kNone : of(g.returned());
  widened = returned != kNone && options.widens;
  if (widened) {
    returned = cast(returned, DType::f32);
    graph.at(returned).logits = true;
  }
  if (options.loss_apart)
    for (const Op& op : g.ops())
      if (op.kind == OpKind::linear && op.out == g.returned()) passed = of(op.in[0]);
  op_ = kNone;
  in_backward_ = true;
  first_backward = graph.end();
  if (g.output() == kNone || !view_.state(g.output()).needs_grad) return;
  tangent = add(NodeKind::input, {}, count(g.output()), view_.state(g.output()).dtype);
  gradients_[static_cast<std::size_t>(g.output())] = tangent;
  for (std::size_t i = g.ops().size(); i-- > 0;) backward(i);
  for (const Deferred& d : deferred_)
    give_weight(g.ops()[static_cast<std::size_t>(d.op)], weight_product(d.op, d.gradient));
  if (options.loss_apart && g.returned() != kNone) {
    returned_gradient = gradients_[static_cast<std::size_t>(g.returned())];
    if (returned_gradient != kNone) graph.at(returned_gradient).realized = true;
  }
  const ValueId chained = view_.chained_input();
  if (chained != kNone) input_gradient = gradients_[static_cast<std::size_t>(chained)];
}

NodeId Trace::add(NodeKind kind, std::initializer_list<NodeId> in, std::int64_t elements,
                  DType type) {
  Node node;
  node.kind = kind;
  node.type = type;
  node.elements = elements;
  node.op = op_;
  node.part = part();
  if (op_ != kNone)
    node.logits =
        view_.graph().value(view_.graph().ops()[static_cast<std::size_t>(op_)].out).logits;
  for (const NodeId id : in) {
    if (id == kNone) continue;
    assert(node.inputs < Node::kMostInputs);
    node.in[node.inputs++] = id;
  }
  // What the backward pass makes of values of the forward pass alone may be made before.
  const auto* first = node.in.data();
  node.backward =
      in_backward_ && (node.inputs == 0 || std::any_of(first, first + node.inputs, [&](NodeId id) {
                         return graph.at(id).backward;
                       }));
  graph.nodes.push_back(node);
  return graph.end() - 1;
}

/// Once for all of a graph that read it: equal expressions are one
/// (torch/_functorch/compile_utils.py, fx_graph_cse).
NodeId Trace::cast(NodeId from, DType type) {
  const Node& node = graph.at(from);
  if (node.type == type) return from;
  const auto [first, last] = casts_.equal_range(from);
  for (auto known = first; known != last; ++known)
    if (graph.at(known->second).type == type && graph.at(known->second).part == part())
      return known->second;
  const NodeId made = counted(pointwise({from}, node.elements, type), 1);
  casts_.emplace(from, made);
  return made;
}

NodeId Trace::parameter(ParameterId id) {
  if (id == kNone) return kNone;
  if (const auto known = parameters_.find(id); known != parameters_.end()) return known->second;
  const NodeId node = add(NodeKind::input, {}, view_.parameter(id).numel, view_.parameter_type(id));
  graph.at(node).backward = false;
  graph.at(node).viewed = unwrapped_.contains(id);
  graph.at(node).resident = !graph.at(node).viewed;
  parameters_.emplace(id, node);
  return node;
}

/// A weight as products read it.
NodeId Trace::weight(const Op& op, ParameterId id) {
  const NodeId stored = parameter(id);
  return view_.casts_weight(op) ? cast(stored, view_.regime().compute) : stored;
}

NodeId Trace::read(std::size_t i, std::size_t k) {
  const Op& op = view_.graph().ops()[i];
  NodeId& node = reads_[i][k];
  node = of(op.in[k]);
  if (node != kNone) node = cast(node, view_.read_type(op, k));
  return node;
}

}  // namespace shardplan::compiled
