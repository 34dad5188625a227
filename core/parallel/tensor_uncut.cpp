// Operations without a cut: what they make lies as what they read does.
#include "parallel/tensor_splitter.h"

#include <algorithm>

#include "parallel/whole_graph.h"

namespace shardplan {

/// What an operation over these inputs makes: divided as the first divided one is.
Layout TensorSplit::of_inputs(const Op& op) const {
  Layout result;
  for (const ValueId in : op.in) {
    if (in == kNone) continue;
    const Layout& s = layout_of(in);
    if (result.width.whole()) result.width = s.width;
    result.tokens = result.tokens || s.tokens;
    result.rows = std::max(result.rows, s.rows);
    result.partial = result.partial || s.partial;
  }
  return result;
}

/// Of other operations the side results are indices, which all ranks have alike.
bool TensorSplit::side_has_width(OpKind kind) {
  return kind == OpKind::sdpa || kind == OpKind::layer_norm || kind == OpKind::rms_norm ||
         kind == OpKind::vocabulary_loss;
}

/// What a linear with a widened weight has made, in the type of what it was given: divided as the
/// result is, however its input lies.
bool TensorSplit::takes_type_alone(const Op& op) const {
  return op.kind == OpKind::to_like && by_widened_[static_cast<std::size_t>(op.in[0])];
}

void TensorSplit::hand_on(GraphRewrite& w, const Op& op) {
  Layout s = takes_type_alone(op) ? layout_of(op.in[0]) : of_inputs(op);
  const Extent whole = w.from().value(op.out).extent;
  Op now = op.all_tokens ? with_all_tokens(w, op) : w.with_inputs(op);
  s.tokens = s.tokens && !op.all_tokens;
  if (s.tokens && !takes_type_alone(op)) take_tokens(w, op, now);
  if (op.kind == OpKind::gather_rows && expert_rows_[static_cast<std::size_t>(op.out)])
    now.in[0] = enter_experts(w, op.in[0], s);
  if (!s.width.whole()) {
    now.work.per = divided(now.work.per, s.width);
    if (side_has_width(op.kind)) now.side.per = divided(now.side.per, s.width);
    // Every rank learns the largest logit, the label's and the sum of a token.
    if (op.kind == OpKind::log_softmax || op.kind == OpKind::vocabulary_loss)
      now.in[0] = sum_rows(w, now.in[0], w.from().value(op.in[0]).extent);
  }
  now.work = of_tokens(now.work, s);
  now.side = of_tokens(now.side, s);
  const bool scalar = whole.scale == Scale::one && whole.per == 1;  // a loss is of all ranks
  if (scalar) s = {};
  if (op.kind == OpKind::function)
    w.append(
        now,
        over_columns(w.from().function(op), [&](std::int64_t n) { return divided(n, s.width); }),
        local(whole, s));
  else
    w.append(now, local(whole, s));
  layouts_[static_cast<std::size_t>(op.out)] = s;
  // A layer of experts ends with its result in the type of its input; Megatron's with its rows in
  // the order in which they came.
  const OpKind end = style_ == SplitStyle::megatron ? OpKind::gather_rows : OpKind::to_like;
  if (s.partial && op.kind == end) leave(w, op.out, ExchangeResult::in_place);
}

/// Megatron's ranks have tokens of their own, which they put together for the experts they share.
ValueId TensorSplit::enter_experts(GraphRewrite& w, ValueId rows, Layout& gathered) {
  if (style_ == SplitStyle::megatron) gathered.rows = expert_ranks_;
  return enter(w, rows, ExchangeResult::in_place, gathered);
}

ValueId TensorSplit::sum_rows(GraphRewrite& w, ValueId logits, Extent whole) const {
  Communication with;
  with.forward = Exchange::all_reduce;
  with.result = ExchangeResult::in_place;
  with.payload = {3, whole.scale};
  return w.exchange(logits, with, w.graph().value(logits).extent);
}

/// Beside values divided along tokens a rank needs its tokens of the others.
void TensorSplit::take_tokens(GraphRewrite& w, const Op& op, Op& now) const {
  for (std::size_t k = 0; k < op.in.size(); ++k) {
    if (op.in[k] == kNone || layout_of(op.in[k]).tokens) continue;
    const Extent whole = w.from().value(op.in[k]).extent;
    if (varies_with_tokens(whole.scale)) now.in[k] = own_tokens(w, now.in[k], whole, ranks_);
  }
}

/// An op over all tokens: what it reads is put together, once for all that read it. Every rank
/// makes the whole gradient of it, and keeps its own tokens'
/// (gather_from_sequence_parallel_region without tensor_parallel_output_grad).
Op TensorSplit::with_all_tokens(GraphRewrite& w, const Op& op) {
  Op now = w.with_inputs(op);
  for (std::size_t k = 0; k < op.in.size(); ++k) {
    if (op.in[k] == kNone || !layout_of(op.in[k]).tokens) continue;
    Communication with;
    with.forward = Exchange::all_gather;
    with.backward = Exchange::slice;
    ValueId& all = together_[static_cast<std::size_t>(op.in[k])];
    if (all == kNone) all = w.exchange(w.at(op.in[k]), with, w.from().value(op.in[k]).extent);
    now.in[k] = all;
  }
  return now;
}

void TensorSplit::hand_on_parameter(GraphRewrite& w, const Op& op) {
  Op now = w.with_inputs(op);
  Extent extent = w.from().value(op.out).extent;
  if (style_ == SplitStyle::megatron && cuts_.of(op.weight) == Cut::column) {  // a row for each
    const Part part{1, ranks_};
    extent.per = divided(extent.per, part);
    parameter_cuts_.cut_rows(op.weight, part);
    layouts_[static_cast<std::size_t>(op.out)].width = part;
  }
  w.append(now, extent);
  if (cuts_.of(op.weight) != Cut::summed) return;
  Communication with;
  with.backward = Exchange::all_reduce;
  with.result = ExchangeResult::in_place;
  w.replace(op.out, w.exchange(w.at(op.out), with, extent));
}

}  // namespace shardplan
