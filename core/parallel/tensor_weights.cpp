// Operations with a weight that is cut: linears, experts, embeddings.
#include "parallel/tensor_splitter.h"

#include <algorithm>
#include <utility>

namespace shardplan {

void TensorSplit::split_linear(GraphRewrite& w, const Op& op) {
  const Cut cut = resolved(op);
  by_widened_[static_cast<std::size_t>(op.out)] =
      op.weight != kNone && parameter(op.weight).widened();
  if (cut == Cut::whole) {
    hand_on(w, op);
    return;
  }
  if (cut == Cut::row || cut == Cut::row_sliced) {
    split_rows(w, op, cut);
    return;
  }
  if (op.kind == OpKind::fused_linear_loss && cut == Cut::column_gathered)
    fail("the fused linear loss takes no divided head");
  const Part part = part_of(op.weight);
  Op now = w.with_inputs(op);
  if (op.in[0] != kNone) {
    now.in[0] = enter(w, op.in[0], where());
    if (layout_of(op.in[0]).tokens && style_ == SplitStyle::megatron) now.kept = w.at(op.in[0]);
  }
  now.work.per = divided(now.work.per, part);
  parameter_cuts_.cut_weight(model_, w.from(), op, false, part);
  parameter_cuts_.cut_rows(op.bias, part);
  append_linear(w, op, now, op.kind == OpKind::fused_linear_loss ? Layout{} : Layout{part});
  if (cut == Cut::column_gathered) gather(w, op.out, {});
  if (lacks_heads(op.weight)) gather(w, op.out, {1, key_value_heads_});
}

/// DeepSpeed's layers add their bias to the product in an operation of its own.
void TensorSplit::append_linear(GraphRewrite& w, const Op& op, Op now, const Layout& out) {
  const Extent extent = local(w.from().value(op.out).extent, out);
  layouts_[static_cast<std::size_t>(op.out)] = out;
  const bool adds = style_ == SplitStyle::autotp && op.bias != kNone;
  if (adds) now.bias = kNone;
  w.append(now, extent);
  if (!adds) return;
  if (!out.width.whole() || cuts_.of(op.weight) == Cut::column_gathered)
    add_bias(w, op, extent);
  else
    late_bias_ = true;
}

void TensorSplit::add_bias(GraphRewrite& w, const Op& op, Extent extent) {
  Op bias{OpKind::parameter};
  bias.module = op.module;
  bias.weight = op.bias;
  const std::int64_t width =
      parameter(op.bias).numel * extent.per / w.from().value(op.out).extent.per;
  const ValueId row = w.graph().op(bias, {width, Scale::one});
  w.replace(op.out, w.graph().op({OpKind::add, {w.at(op.out), row, kNone}}, extent));
}

void TensorSplit::split_rows(GraphRewrite& w, const Op& op, Cut cut) {
  Op now = w.with_inputs(op);
  Part part = layout_of(op.in[0]).width;
  if (cut == Cut::row_sliced || part.whole()) {
    part = {1, ranks_};
    Communication with;
    with.forward = Exchange::slice;
    with.backward = Exchange::all_gather;
    const Extent whole = w.from().value(op.in[0]).extent;
    now.in[0] = w.exchange(now.in[0], with, {divided(whole.per, part), whole.scale});
  }
  now.work.per = divided(now.work.per, part);
  parameter_cuts_.cut_weight(model_, w.from(), op, true, part);
  append_linear(w, op, now, {});
  leave(w, op.out, where(), op.all_tokens);
  if (std::exchange(late_bias_, false))
    add_bias(w, op, local(w.from().value(op.out).extent, layout_of(op.out)));
}

/// Experts: all ranks route the same tokens. A rank has a part of every expert, or some experts
/// whole; what it lacks is summed in when the layer's tokens are put together.
void TensorSplit::split_experts(GraphRewrite& w, const Op& op) {
  const Cut cut = resolved(op);
  if (cut == Cut::whole) {
    hand_on(w, op);
    return;
  }
  const Part part{1, expert_ranks_};
  Op now = w.with_inputs(op);
  now.work.per = divided(now.work.per, part);
  now.work = of_tokens(now.work, layout_of(op.in[0]));
  Layout out = layout_of(op.in[0]);
  if (cut == Cut::column) out.width = part;
  if (cut == Cut::row) out = {{}, out.tokens, out.rows, true};
  if (cut == Cut::number) out.partial = true;
  const std::int32_t dim = cut == Cut::number ? 0 : cut == Cut::column ? 1 : 2;
  parameter_cuts_.cut(op.weight, static_cast<std::size_t>(dim), part);
  layouts_[static_cast<std::size_t>(op.out)] = out;
  w.append(now, local(w.from().value(op.out).extent, out));
}

void TensorSplit::split_embedding(GraphRewrite& w, const Op& op) {
  w.append(w.with_inputs(op), w.from().value(op.out).extent);
  if (cuts_.of(op.weight) != Cut::vocabulary) return;
  parameter_cuts_.cut_rows(op.weight, rows_of_vocabulary());
  leave(w, op.out, where());
}

}  // namespace shardplan
