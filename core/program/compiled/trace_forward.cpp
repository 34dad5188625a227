// What operations of the forward pass are decomposed to.
#include <algorithm>

#include "program/compiled/trace.h"
#include "program/op_rules.h"
#include "program/tape/widened.h"

namespace shardplan::compiled {
namespace {

/// GPT-Neo and GPT-J cast queries and keys before they multiply them, and make their mask of
/// position_ids: Inductor makes it anew for each score, from more than four tensors, so that the
/// masked scores have a buffer (torch/_inductor/ir.py, should_realize_on_reuse; seen in the
/// wrappers of GPT-Neo).
bool is_masked_by_positions(const Graph& graph, const Op& softmax) {
  bool multiplied = false;
  for (const Op* op = &softmax; op->kind != OpKind::linear && op->in[0] != kNone;) {
    const auto maker = std::ranges::find(graph.ops(), op->in[0], &Op::out);
    if (maker == graph.ops().end()) return false;
    op = &*maker;
    if (op->kind == OpKind::to_f32) return multiplied;
    multiplied = multiplied || op->kind == OpKind::matmul;
  }
  return false;
}

/// Of Inductor, with the constant that it reads (inlined.h): a cube is two products. Of what is not
/// part of an activation that is written out: 0.
std::int32_t operations_of(const Op& op) {
  switch (op.kind) {
    case OpKind::mul:
    case OpKind::tanh:
      return 1;
    case OpKind::scalar:
    case OpKind::power:
      return 2;
    case OpKind::add:
      return op.in[1] == kNone ? 2 : 1;
    default:
      return 0;
  }
}

}  // namespace

void Trace::forward(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  tape::ValueState& state = view_.state(op.out);
  state.needs_grad = view_.needs_grad(op);
  state.dtype = view_.result_type(op);
  op_ = static_cast<std::int32_t>(i);
  if (view_.is_alias(op, TapeMode::keep)) {
    of(op.out) = reads_[i][0] = of(op.in[0]);
    if (op.splits) graph.at(of(op.out)).in_parts = true;
    return;
  }
  const std::int64_t n = count(op.out);
  if (op.fused != nullptr) return kernel(i);
  switch (op.kind) {
    case OpKind::parameter:
      of(op.out) = parameter(op.weight);
      return;
    case OpKind::linear:
    case OpKind::grouped_linear:
      return linear(i);
    case OpKind::matmul:
      of(op.out) = add(NodeKind::product, {read(i, 0), read(i, 1)}, n, state.dtype);
      return;
    case OpKind::sdpa:
      return attention(i);
    case OpKind::layer_norm:
    case OpKind::rms_norm:
      return norm(i);
    case OpKind::softmax:
    case OpKind::softmax_f32:
    case OpKind::log_softmax:
      return softmax(i);
    case OpKind::mean:
    case OpKind::sum:
      return reduce(i);
    case OpKind::nll_loss:
      return mean_loss(i);
    case OpKind::scatter_rows:
      of(op.out) = add(NodeKind::scatter, {read(i, 0)}, n, state.dtype);
      return;
    case OpKind::dropout:
      sides_[i][0] = add(NodeKind::random, {}, n, DType::b1);
      of(op.out) = pointwise({read(i, 0), sides_[i][0]}, n, state.dtype);
      // The mask is multiplied by what is read, and the product scaled.
      if (options_.begins_graph) graph.at(of(op.out)).steps = 2;
      return;
    case OpKind::embedding:
      return embedding(i);
    case OpKind::copy:
      return copy(i);
    case OpKind::to_f32:
    case OpKind::to_adapter:
    case OpKind::to_like:
      of(op.out) = cast(read(i, 0), state.dtype);
      return;
    default:
      return each_element(i);
  }
}

/// What is told to need a gradient is a leaf, which its accumulator holds: beside what is handed on
/// where that is another graph's, of a module of all embeddings as in BERT, or of OPT. The graph of
/// GPT-2 begins with the leaf and keeps that alone.
void Trace::embedding(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  tape::ValueState& state = view_.state(op.out);
  const NodeId made = of(op.out) =
      add(NodeKind::lookup, {parameter(op.weight)}, count(op.out), state.dtype);
  const bool first = !seen_words_ && op.out != view_.graph().output();
  seen_words_ = true;  // positions come after them
  if (!options_.tells || !first || state.needs_grad) return;
  state.needs_grad = true;
  if (options_.embeds_in_module || options_.eager_tables) leaf = made;
}

/// A bias behind a product of its type is one call with it (addmm).
bool Trace::adds_bias(const Op& op, const std::array<NodeId, 3>& in) const {
  if (op.kind != OpKind::add || in[1] == kNone) return false;
  const Node &product = graph.at(in[0]), &bias = graph.at(in[1]);
  if (product.kind != NodeKind::product || product.op == kNone) return false;
  const Op& linear = view_.graph().ops()[static_cast<std::size_t>(product.op)];
  return linear.weight != kNone && bias.kind == NodeKind::input && product.type == bias.type &&
         bias.elements == view_.parameter(linear.weight).shape.front();
}

void Trace::each_element(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  std::array<NodeId, 3> in{kNone, kNone, kNone};
  for (std::size_t k = 0; tape::GraphView::reads(op, k); ++k) in[k] = read(i, k);
  if (adds_bias(op, in)) {
    of(op.out) = in[0];
    return;
  }
  of(op.out) = pointwise({in[0], in[1], in[2]}, count(op.out), view_.state(op.out).dtype);
  graph.at(of(op.out)).untagged = op.own_function;
  graph.at(of(op.out)).operations = operations_of(op);
}

/// What attention returns lies in the order of its copy, where the queries do: that is a view.
void Trace::copy(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  const std::int64_t n = count(op.out);
  const NodeId x = read(i, 0);
  const Node& from = graph.at(x);
  const bool lies = from.kind == NodeKind::attention && !from.by_heads && from.elements == n;
  of(op.out) = lies ? x : pointwise({x}, n, view_.state(op.out).dtype);
}

void Trace::reduce(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  of(op.out) = add(NodeKind::reduction, {read(i, 0)}, count(op.out), view_.state(op.out).dtype);
}

/// With the labels, shifted.
void Trace::mean_loss(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  sides_[i][0] = add(NodeKind::lookup, {}, elements(op.side, view_.sizes()), DType::i64);
  of(op.out) = add(NodeKind::reduction, {read(i, 0), sides_[i][0]}, count(op.out),
                   view_.state(op.out).dtype);
}

void Trace::linear(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  if (view_.multiplies_int8(op)) return int8_linear(i);
  const NodeId x = op.in[0] == kNone ? kNone : read(i, 0);
  if (view_.multiplies_narrow(op)) return narrow_linear(i, x);
  const NodeId w = weight(op, op.weight);
  sides_[i][0] = w;
  of(op.out) = add(NodeKind::product, {x, w}, count(op.out), view_.state(op.out).dtype);
  graph.at(of(op.out)).viewed = options_.begins_graph;  // from rows of tokens to sequences
  if (const std::int64_t row = padded_row(i); row > 0) {
    graph.at(of(op.out)).padded = graph.at(of(op.out)).aligned = true;
    timed.push_back({product_size(i), row, graph.at(w).type, view_.state(op.in[0]).needs_grad,
                     view_.trains(op.weight)});
  }
  // One operator of bitsandbytes 0.50 widens the weight and multiplies by it (gemm_4bit), in a
  // function of autograd (MatMul4Bit).
  graph.at(of(op.out)).workspace = tape::widened_bytes(view_, op);
  graph.at(of(op.out)).workspace += padded_weight(i);
  graph.at(of(op.out)).untagged = view_.parameter(op.weight).widened();
}

/// Statistics of rows in fp32, and the rest element by element.
void Trace::norm(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  const std::int64_t rows = elements(op.side, view_.sizes());
  const std::int64_t n = count(op.out);
  const NodeId given = read(i, 0);
  const bool centred = op.kind == OpKind::layer_norm;
  // Where a chain may end (compiled/partition.h, ChainInFront), it does at one of these. A graph
  // that begins with an argument keeps what is normalized in place of the sum before it (OPT 350M).
  const bool chain = options_.input_again && given == input;
  const bool apart = centred && (chain || options_.begins_graph);
  const NodeId x = apart ? cast(given, DType::f32) : given;
  const NodeId mean = centred ? add(NodeKind::reduction, {x}, rows, DType::f32) : kNone;
  const NodeId variance = add(NodeKind::reduction, {x}, rows, DType::f32);
  const NodeId inverse = pointwise({variance}, rows, DType::f32);
  const NodeId normal = apart ? pointwise({x, mean, inverse}, n, DType::f32) : kNone;
  if (apart && !chain) graph.at(normal).steps = 2;  // less the mean, times the inverse
  sides_[i] = {mean, inverse, normal};
  const NodeId w = parameter(op.weight), b = parameter(op.bias);
  const DType type = view_.state(op.out).dtype;
  of(op.out) =
      apart ? pointwise({normal, w, b}, n, type) : pointwise({x, mean, inverse, w, b}, n, type);
}

/// The largest of each row, the sum of the exponentials, and the rest element by element.
void Trace::softmax(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  const std::int64_t rows = rows_of(view_.extent_of(op.out), view_.sizes());
  const NodeId x = read(i, 0);
  if (is_masked_by_positions(view_.graph(), op))
    graph.at(x).realized = graph.at(x).masked_by_positions = true;
  const NodeId largest = add(NodeKind::reduction, {x}, rows, DType::f32);
  const NodeId sum = add(NodeKind::reduction, {x, largest}, rows, DType::f32);
  of(op.out) = pointwise({x, largest, sum}, count(op.out), view_.state(op.out).dtype);
}

std::int64_t Trace::shared_by(std::size_t i) const {
  const Op& op = view_.graph().ops()[i];
  if (!view_.is_masked(op) && !(op.causal && options_.masked)) return 1;
  return std::max<std::int64_t>(1, view_.extent_of(op.in[0]).per / view_.extent_of(op.in[1]).per);
}

/// With a mask keys and values are repeated to the heads of the queries; one head is expanded
/// without a copy.
void Trace::attention(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  if (attends_as_math(op)) return math_attention(i);
  const std::int64_t groups = shared_by(i);
  for (std::size_t k = 0; k < 3; ++k) {
    const NodeId x = read(i, k);
    if (k == 0 || groups == 1 || groups == op.side.per) continue;
    reads_[i][k] = pointwise({x}, count(op.in[k]) * groups, graph.at(x).type);
  }
  const NodeId bias = op.scores_bias == kNone ? attention_mask(op, graph.at(reads_[i][0]).type)
                                              : of(op.scores_bias);
  sides_[i][1] = bias;
  const auto [q, k, v] = reads_[i];
  of(op.out) = add(NodeKind::attention, {q, k, v, bias}, count(op.out), view_.state(op.out).dtype);
  // The result lies as the queries do; put together from two parts, those lie head by head. The
  // kernel that fp32 takes writes token by token (_scaled_dot_product_efficient_attention).
  const bool as_queries = view_.state(op.out).dtype != DType::f32;
  for (const Op& maker : view_.graph().ops())
    if (maker.out == op.in[0])
      graph.at(of(op.out)).by_heads = as_queries && maker.kind == OpKind::cat;
  // The log-sum-exp is a second result of the call.
  sides_[i][0] =
      add(NodeKind::attention, {of(op.out)}, elements(op.side, view_.sizes()), DType::f32);
}

/// Seen with BERT on an H100, ModernBERT on an H200 (its layers without a window) and in the graphs
/// of PyTorch 2.11.
bool Trace::attends_as_math(const Op& op) const {
  return options_.masked && sees_all_tokens(op);
}

/// `x` in fp32; of a slice its own elements alone.
NodeId Trace::in_fp32(NodeId x, std::int64_t elements) {
  return graph.at(x).elements == elements ? cast(x, DType::f32)
                                          : pointwise({x}, elements, DType::f32);
}

/// Scores, probabilities and their dropout, where there is one, in fp32
/// (aten/src/ATen/native/transformers/attention.cpp, _scaled_dot_product_attention_math).
void Trace::math_attention(std::size_t i) {
  const Op& op = view_.graph().ops()[i];
  const Extent extent{op.side.per, op.work.scale};
  const std::int64_t n = elements(extent, view_.sizes());
  const std::int64_t rows = elements(op.side, view_.sizes());
  std::array<NodeId, 3> wide{};
  for (std::size_t k = 0; k < 3; ++k) wide[k] = in_fp32(read(i, k), count(op.in[k]));
  const NodeId scores = add(NodeKind::product, {wide[0], wide[1]}, n, DType::f32);
  const NodeId largest = add(NodeKind::reduction, {scores}, rows, DType::f32);
  const NodeId sum = add(NodeKind::reduction, {scores, largest}, rows, DType::f32);
  const NodeId mask = op.drops ? add(NodeKind::random, {}, n, DType::b1) : kNone;
  const NodeId probabilities = pointwise({scores, largest, sum}, n, DType::f32);
  const NodeId dropped = op.drops ? pointwise({probabilities, mask}, n, DType::f32) : probabilities;
  sides_[i] = {probabilities, mask, dropped};
  const NodeId out = add(NodeKind::product, {dropped, wide[2]}, count(op.out), DType::f32);
  of(op.out) = cast(out, view_.state(op.out).dtype);
}

}  // namespace shardplan::compiled
