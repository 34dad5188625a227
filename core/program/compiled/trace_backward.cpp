// What the backward of each operation computes, from gradients and from values of the forward pass.
#include <algorithm>

#include "base/checked.h"
#include "program/compiled/padding.h"
#include "program/compiled/trace.h"
#include "program/op_rules.h"

namespace shardplan::compiled {

void Trace::backward(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  const NodeId g = gradients_[static_cast<std::size_t>(op.out)];
  if (g == kNone || !view_.state(op.out).needs_grad) return;
  op_ = static_cast<std::int32_t>(i);
  const NodeId x = reads_[i][0], y = reads_[i][1];
  const std::int64_t n = count(op.out);
  const DType type = view_.state(op.out).dtype;
  if (op.fused != nullptr) return kernel_backward(i, g);
  switch (op.kind) {
    case OpKind::linear:
    case OpKind::grouped_linear:
      return linear_backward(i, g);
    case OpKind::sdpa:
      return attention_backward(i, g);
    case OpKind::layer_norm:
    case OpKind::rms_norm:
      return norm_backward(i, g);
    case OpKind::mul:
      return mul_backward(i, g);
    case OpKind::matmul:  // the second factor's first, as autograd's functions of products have it
      if (view_.state(op.in[1]).needs_grad)
        give(i, 1, add(NodeKind::product, {g, x}, graph.at(y).elements, graph.at(y).type));
      if (view_.state(op.in[0]).needs_grad)
        give(i, 0, add(NodeKind::product, {g, y}, graph.at(x).elements, graph.at(x).type));
      return;
    case OpKind::parameter:
      return give_parameter(op.weight, g);
    case OpKind::embedding:
      return table_backward(op, g);
    case OpKind::softmax:
    case OpKind::softmax_f32:
    case OpKind::log_softmax:
      return softmax_backward(i, g);
    case OpKind::silu:
      return give(i, 0, gate_gradient(g, x, type));
    case OpKind::power:  // thrice the square
    case OpKind::gelu:
    case OpKind::clamp:
      return give(i, 0, counted(pointwise({g, x}, n, type), op.kind == OpKind::power ? 3 : 0));
    case OpKind::tanh:  // 1 less its square
      return give(i, 0, counted(pointwise({g, of(op.out)}, n, type), 4));
    case OpKind::rsqrt:
    case OpKind::square_root:
    case OpKind::sigmoid:
      return give(i, 0, pointwise({g, of(op.out)}, n, type));
    case OpKind::relu:  // where a result is 0, a bit of which may be kept in place of it
      return give(i, 0, pointwise({g, pointwise({of(op.out)}, n, DType::b1)}, n, type));
    case OpKind::dropout:
      return give(i, 0, pointwise({g, sides_[i][0]}, n, type));
    case OpKind::nll_loss:
      return give(i, 0, pointwise({g, sides_[i][0]}, graph.at(x).elements, graph.at(x).type));
    case OpKind::gather_rows:
      return give(i, 0, add(NodeKind::scatter, {g}, count(op.in[0]), type));
    case OpKind::compare:
      return;
    default:
      return spread_backward(i, g);
  }
}

void Trace::softmax_backward(std::size_t i, NodeId g) {
  const ValueId result = view_.graph().ops()[i].out;
  const NodeId out = of(result);
  const NodeId sum = add(NodeKind::reduction, {g, out},
                         rows_of(view_.extent_of(result), view_.sizes()), DType::f32);
  give(i, 0, pointwise({g, out, sum}, count(result), graph.at(reads_[i][0]).type));
}

/// Operations that hand their gradient on: changed element by element, summed over what was
/// broadcast, or written into a part of their input.
void Trace::spread_backward(std::size_t i, NodeId g) {
  const Op& op = view_.graph().ops()[i];
  const bool same = passes_gradient(op.kind);
  for (std::size_t k = 0; tape::GraphView::reads(op, k); ++k) {
    if (!view_.state(op.in[k]).needs_grad) continue;
    const DType type = reads_[i][k] == kNone ? graph.at(g).type : graph.at(reads_[i][k]).type;
    const std::int64_t own = count(op.in[k]);
    const std::int64_t given = graph.at(g).elements;
    NodeId result = g;
    if (own < given && op.kind != OpKind::cat) {
      result = summed_to(g, own, type);
      graph.at(result).alone = view_.extent_of(op.in[k]).scale == Scale::one;  // a bias
    } else if (own != given || !same) {
      result = counted(pointwise({g}, own, type), op.kind == OpKind::scalar ? 1 : 0);
    }
    give(i, k, result);
  }
  if (op.kind != OpKind::cat) return;
  for (const Hold& join : view_.graph().joins())
    if (join.until == op.out && view_.state(join.value).needs_grad)
      accumulate(join.value, pointwise({g}, count(join.value), graph.at(g).type));
}

NodeId Trace::summed_to(NodeId g, std::int64_t elements, DType type) {
  if (graph.at(g).elements == elements) return cast(g, type);
  return add(NodeKind::reduction, {g}, elements, type);
}

/// Whether it follows element by element from what attention makes, head by head, and heads are not
/// `width` wide.
bool Trace::lies_by_heads(NodeId g, std::int64_t width) const {
  const Node& node = graph.at(g);
  if (node.kind == NodeKind::attention) {
    const Op& op = view_.graph().ops()[static_cast<std::size_t>(node.op)];
    return count(op.in[0]) != checked_mul(width, elements(op.side, view_.sizes()));
  }
  if (node.kind != NodeKind::pointwise || !node.backward) return false;
  return std::any_of(node.in.begin(), node.in.begin() + static_cast<std::ptrdiff_t>(node.inputs),
                     [&](NodeId in) { return lies_by_heads(in, width); });
}

void Trace::mul_backward(std::size_t i, NodeId g) {
  const Op& op = view_.graph().ops()[i];
  for (const ValueId in : {op.in[0], op.in[1]}) {
    if (in == kNone || view_.extent_of(in).scale != Scale::one) continue;
    if (lies_by_heads(g, count(in))) graph.at(g).realized = graph.at(g).turned = true;
  }
  for (std::size_t k = 0; k < 2; ++k) {
    if (op.in[k] == kNone || !view_.state(op.in[k]).needs_grad) continue;
    const NodeId other = reads_[i][1 - k];
    const std::int64_t own = count(op.in[k]);
    const DType type = graph.at(reads_[i][k]).type;
    NodeId product = counted(pointwise({g, other}, graph.at(g).elements, graph.at(g).type), 1);
    if (own < graph.at(g).elements) {
      product = summed_to(product, own, type);
      const bool column = view_.extent_of(op.in[k]).scale == Scale::one;
      graph.at(product).workspace = column ? graph.at(g).elements / 4 : 0;
      graph.at(product).across = column;
    }
    give(i, k, cast(product, type));
  }
}

void Trace::norm_backward(std::size_t i, NodeId g) {
  const Op& op = view_.graph().ops()[i];
  const std::int64_t n = count(op.out);
  const std::int64_t rows = elements(op.side, view_.sizes());
  const auto [average, inverse, normal] = sides_[i];
  const bool apart = normal != kNone;
  const NodeId x = apart ? normal : reads_[i][0], mean = apart ? kNone : average;
  const NodeId w = parameter(op.weight);
  const auto column = [&](ParameterId id, std::initializer_list<NodeId> in) {
    if (!view_.trains(id)) return;
    const NodeId sum = add(NodeKind::reduction, in, view_.parameter(id).numel, DType::f32);
    graph.at(sum).workspace = n / 4;
    graph.at(sum).across = true;
    give_parameter(id, cast(sum, view_.parameter_type(id)));
  };
  if (view_.state(op.in[0]).needs_grad) {
    const NodeId first = add(NodeKind::reduction, {g, w, x, mean, inverse}, rows, DType::f32);
    const NodeId second =
        average == kNone ? kNone : add(NodeKind::reduction, {g, w}, rows, DType::f32);
    give(i, 0, pointwise({g, w, x, mean, inverse, first, second}, n, graph.at(reads_[i][0]).type));
  }
  column(op.weight, {g, x, mean, inverse});
  column(op.bias, {g});
}

/// In fp32 as well: what autocast says of products does not reach the backward pass. Measured with
/// BERT on an H100.
void Trace::math_attention_backward(std::size_t i, NodeId g) {
  const Op& op = view_.graph().ops()[i];
  const auto [probabilities, mask, dropped] = sides_[i];
  const std::int64_t n = graph.at(probabilities).elements;
  const std::int64_t rows = elements(op.side, view_.sizes());
  const auto product = [&](NodeId a, NodeId b, std::int64_t elements) {
    return add(NodeKind::product, {a, b}, elements, DType::f32);
  };
  const auto wide = [&](std::size_t at) { return in_fp32(reads_[i][at], count(op.in[at])); };
  const auto hand = [&](std::size_t at, NodeId a, NodeId b) {
    const NodeId made = product(a, b, count(op.in[at]));
    give(i, at, cast(made, graph.at(reads_[i][at]).type));
  };
  const NodeId out = cast(g, DType::f32);
  hand(2, dropped, out);
  const NodeId masked = pointwise({product(out, wide(2), n), mask}, n, DType::f32);
  const NodeId sum = add(NodeKind::reduction, {masked, probabilities}, rows, DType::f32);
  const NodeId scores = pointwise({masked, probabilities, sum}, n, DType::f32);
  hand(0, scores, wide(1));
  hand(1, scores, wide(0));
}

void Trace::attention_backward(std::size_t i, NodeId g) {
  const Op& op = view_.graph().ops()[i];
  if (attends_as_math(op)) return math_attention_backward(i, g);
  const auto [q, k, v] = reads_[i];
  const NodeId bias = sides_[i][1];
  const std::int64_t heads = shared_by(i);
  NodeId call = kNone;
  for (std::size_t at = 0; at < 3; ++at) {
    const Node read = graph.at(reads_[i][at]);
    // Of one head that was expanded the kernel returns the gradients of all.
    const std::int64_t all = count(op.in[at]) * (at == 0 ? 1 : heads);
    const NodeId made =
        call == kNone
            ? add(NodeKind::attention, {g, q, k, v, of(op.out), sides_[i][0], bias}, all, read.type)
            : add(NodeKind::attention, {call}, all, read.type);
    if (call == kNone) {
      call = made;
      graph.at(call).workspace = 4 * all;  // cuDNN adds up the queries' gradient in fp32
    }
    if (!view_.state(op.in[at]).needs_grad) continue;
    const NodeId given = summed_to(made, count(op.in[at]), read.type);
    graph.at(given).by_heads = given != made;
    give(i, at, given);
  }
}

void Trace::linear_backward(std::size_t i, NodeId g) {
  const Op& op = view_.graph().ops()[i];
  if (view_.multiplies_int8(op)) return int8_linear_backward(i, g);
  g = taken_from_heads(g);
  const bool input_grad = op.in[0] != kNone && view_.state(op.in[0]).needs_grad;
  const bool weight_grad = view_.trains(op.weight);
  NodeId product = kNone;
  // Of both products' operands, by one kernel that reads the gradient once.
  const bool pads = copies_gradient(i);
  if (pads) graph.at(g).realized = true;
  const NodeId turned = pads && weight_grad ? padded_copy(i, g) : g;
  const NodeId rows = pads && input_grad ? padded_copy(i, g) : g;
  const auto for_input = [&] {
    return input_product(i, copies_for_input(i) ? padded_copy(i, g) : rows);
  };
  // torchao's function multiplies for the input first (float8/float8_linear.py, backward); in
  // graphs of single blocks with scales of rows the weight's product stands before it. So does
  // autograd where a bias is added, whose gradient it sums last (AddmmBackward0).
  const bool torchao = view_.multiplies_narrow(op) && (options_.masked || !view_.recipe().by_rows);
  const bool input_first = input_grad && (torchao || op.bias != kNone);
  const NodeId first = input_first ? for_input() : kNone;
  if (weight_grad && op.weight == options_.tied.table && !options_.tied.at_once) {
    hold_for_table(op, turned, reads_[i][0]);
  } else if (weight_grad && options_.defers_weights) {
    deferred_.push_back({op_, turned});
  } else if (weight_grad) {
    product = weight_product(op_, turned);
  }
  if (view_.trains(op.bias)) {
    const NodeId sum = summed_to(g, view_.parameter(op.bias).numel, view_.parameter_type(op.bias));
    graph.at(sum).alone = sum != g;
    give_parameter(op.bias, sum);
  }
  if (input_grad) give(i, 0, input_first ? first : for_input());
  if (product != kNone) give_weight(op, product);
}

NodeId Trace::input_product(std::size_t i, NodeId g) {
  const Op& op = view_.graph().ops()[i];
  if (view_.multiplies_narrow(op)) return narrow_input_product(i, g);
  const NodeId x = reads_[i][0];
  const NodeId made =
      add(NodeKind::product, {g, weight_in_backward(i)}, count(op.in[0]), graph.at(x).type);
  graph.at(made).workspace = padded_weight(i);
  graph.at(made).aligned = padded_row(i) > 0;
  // With a bias the gradient's copy is made here, and none of a weight that autocast has copied:
  // the copy takes its place. From three runs of BERT. Behind blocks that are computed again it is
  // made last, when the copies of the gradient are there: RoBERTa, whose graph says so too.
  if (op.bias != kNone && copies_gradient(i))
    graph.at(made).workspace =
        view_.casts_weight(op) && !options_.tied.stays ? 0 : padded_weight(i);
  else if (op.bias != kNone && !copies_for_input(i))
    graph.at(made).workspace = (view_.casts_weight(op) ? 0 : padded_weight(i)) +
                               padded_row(i) * size_of(graph.at(sides_[i][0]).type) *
                                   (count(op.out) / view_.parameter(op.weight).shape.front());
  return made;
}

/// Bytes of the copy with longer rows that a product reads.
std::int64_t Trace::padded_weight(std::size_t i) const {
  const ParameterId id = view_.graph().ops()[i].weight;
  return padded_row(i) * view_.parameter(id).shape.back() * size_of(graph.at(sides_[i][0]).type);
}

/// Allocator histories of GPT-2 medium show both copies.
NodeId Trace::padded_copy(std::size_t i, NodeId g) {
  const Op& op = view_.graph().ops()[i];
  const DType type = graph.at(sides_[i][0]).type;
  const std::int64_t tokens = count(op.out) / view_.parameter(op.weight).shape.front();
  const NodeId copy = pointwise({g}, checked_mul(tokens, row_stride(padded_row(i), type)), type);
  graph.at(copy).realized = true;
  return copy;
}

std::int64_t Trace::padded_row(std::size_t i) const {
  const Op& op = view_.graph().ops()[i];
  const std::int64_t row = view_.parameter(op.weight).shape.front();
  const std::int64_t padded = padded_columns(row, graph.at(sides_[i][0]).type);
  return padded != row && may_be_padded(product_size(i), options_.product_balance) ? padded : 0;
}

/// Of a frozen weight there is no product that could read the gradient as it is: XLM-RoBERTa with
/// adapters, whose history shows the copies of RoBERTa's.
bool Trace::copies_gradient(std::size_t i) const {
  const Op& op = view_.graph().ops()[i];
  const bool low = size_of(graph.at(sides_[i][0]).type) <= 2;
  return padded_row(i) > 0 && low &&
         (!view_.trains(op.weight) ||
          both_take_copies(view_.parameter(op.weight).shape.front(), op.bias != kNone));
}

/// Of fp32 the product for the input alone reads a copy with longer rows. Inductor takes that one
/// for free, as a kernel may write it at once; the weight's product reads the gradient turned,
/// whose copy is timed with it (pad_mm.py, should_exclude_padding_time). So did seven of nine runs;
/// beside other runs timings differ.
bool Trace::copies_for_input(std::size_t i) const {
  return padded_row(i) > 0 && size_of(graph.at(sides_[i][0]).type) > 2;
}

ProductSize Trace::product_size(std::size_t i) const {
  const Op& op = view_.graph().ops()[i];
  const std::int64_t row = view_.parameter(op.weight).shape.front();
  return {count(op.out) / row, view_.parameter(op.weight).shape.back(), row};
}

/// One in four bits is widened by an operator of its own, from parameters alone: that is left to
/// the backward pass, as nothing of the forward pass is kept for it.
NodeId Trace::weight_in_backward(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  if (!view_.parameter(op.weight).widened()) return sides_[i][0];
  return call({sides_[i][0]}, view_.parameter(op.weight).numel, view_.parameter_type(op.weight));
}

/// A product in the parameter's type is made when the table's gradient is there, to which it is
/// added in the same call (addmm): until then its operands wait, as those of a padded one do. One
/// in another type is made at once, and waits itself; so does one that cannot be moved.
void Trace::hold_for_table(const Op& op, NodeId g, NodeId x) {
  const DType low = graph.at(sides_[static_cast<std::size_t>(op_)][0]).type;
  const bool padded = copies_gradient(static_cast<std::size_t>(op_));
  const bool later = !options_.tied.stays && (padded || low == view_.parameter_type(op.weight));
  const NodeId product =
      add(NodeKind::product, {g, x}, later ? 0 : view_.parameter(op.weight).numel, low);
  graph.at(product).of_weight = true;
  graph.at(product).aligned = padded_row(static_cast<std::size_t>(op_)) > 0;
  if (later)
    held_for_table = {g, x};
  else
    held_for_table = {product};
}

NodeId Trace::weight_product(std::int32_t i, NodeId g) {
  const Op& op = view_.graph().ops()[static_cast<std::size_t>(i)];
  op_ = i;
  const NodeId x = reads_[static_cast<std::size_t>(i)][0];
  const DType low = graph.at(sides_[static_cast<std::size_t>(i)][0]).type;
  const NodeId product = view_.multiplies_narrow(op) ? narrow_weight_product(op, g, x)
                                                     : add(NodeKind::product, {g, x},
                                                           view_.parameter(op.weight).numel, low);
  graph.at(product).of_weight = true;
  graph.at(product).aligned = padded_row(static_cast<std::size_t>(i)) > 0;
  return product;
}

/// The product's function of autograd makes both gradients; the cast of an autocast weight is one
/// of its own, which runs when the gradient of the result may be gone.
void Trace::give_weight(const Op& op, NodeId product) {
  give_parameter(op.weight, cast(product, view_.parameter_type(op.weight)));
}

/// Whether it is the gradient that the segment is given, or that in another type or scaled, and
/// nothing else needs it: then no kernel makes it for the table's to read.
bool Trace::is_tangent_alone(NodeId g) const {
  const std::vector<Op>& ops = view_.graph().ops();
  const bool others = std::count_if(ops.begin(), ops.end(), [&](const Op& op) {
                        return op.weight != kNone && view_.trains(op.weight);
                      }) > 1;
  if (others) return false;
  while (g != tangent && graph.at(g).kind == NodeKind::pointwise && graph.at(g).inputs == 1)
    g = graph.at(g).in[0];
  return g == tangent;
}

/// Rows are added up in fp32 (torch/_inductor/decomposition.py, embedding_dense_backward).
void Trace::table_backward(const Op& op, NodeId g) {
  if (!view_.trains(op.weight)) return;
  const DType own = view_.parameter_type(op.weight);
  const NodeId table = add(NodeKind::scatter, {g}, view_.parameter(op.weight).numel,
                           options_.eager_tables ? own : DType::f32);
  graph.at(table).realized = options_.eager_tables;
  if (is_tangent_alone(g)) graph.at(table).workspace = options_.scattered_operands;
  if (op.weight != options_.tied.table) return give_parameter(op.weight, cast(table, own));
  if (options_.tied.at_once) {  // added where the head's product is
    graph.at(pointwise({table}, 0, own)).of_weight = true;
    return;
  }
  // The head's product is added to it, and was counted there (hold_for_table).
  const std::int64_t n = view_.parameter(op.weight).numel;
  if (view_.regime().compute == own && !options_.tied.stays)
    return give_parameter(op.weight, add(NodeKind::product, {cast(table, own)}, n, own));
  give_parameter(op.weight, pointwise({table}, n, own));
}

void Trace::give_parameter(ParameterId id, NodeId g) {
  if (!view_.trains(id)) return;
  // What is computed for others too has a kernel of its own for the parameter.
  const Node& made = graph.at(g);
  if (made.kind == NodeKind::input || made.gradient_of != kNone || !made.backward)
    g = pointwise({g}, made.elements, made.type);
  graph.at(g).gradient_of = id;
}

/// Hands the gradient of what the operation read to input k, through the cast's backward.
void Trace::give(std::size_t i, std::size_t k, NodeId g) {
  const Op& op = view_.graph().ops()[i];
  accumulate(op.in[k], cast(g, view_.state(op.in[k]).dtype));
}

/// Autograd itself adds up what comes from two graphs.
void Trace::accumulate(ValueId value, NodeId g) {
  NodeId& known = gradients_[static_cast<std::size_t>(value)];
  if (known == kNone) {
    known = g;
    return;
  }
  const bool together = graph.at(known).part == graph.at(g).part;
  known = counted(pointwise({known, g}, graph.at(g).elements, graph.at(g).type), 1);
  if (!together) graph.at(known).part = kNone;
}

}  // namespace shardplan::compiled
