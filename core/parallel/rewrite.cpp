#include "parallel/rewrite.h"

namespace shardplan {

GraphRewrite::GraphRewrite(const Graph& from) : from_(from), now_(from.values().size(), kNone) {
  to_.set_loss(from.loss());
  to_.set_kernels(from.fuses() ? KernelSet::megatron : KernelSet::eager);
  to_.set_flash_attn(from.flash_attn());
  to_.set_fused(from.fused());
  to_.set_cached(from.cached());
  to_.set_attention_again(from.attention_again());
  if (from.lets_input_go()) to_.let_input_go();
}

void GraphRewrite::input(const Input& in, Extent extent) {
  const ValueId id = in.kind == InputKind::chained ? to_.chained_input(extent)
                                                   : to_.shared_input(in.shared, extent);
  replace(in.value, id);
}

void GraphRewrite::append(const Op& op, Extent out) {
  if (from_.value(op.out).logits && !in_logits_) {
    in_logits_ = true;
    to_.begin_logits();
  }
  const ValueId old = op.out;
  to_.set_autocast(op.autocast);
  to_.set_all_tokens(op.all_tokens);
  Op now = op;
  if (op.kind == OpKind::function) now.function = to_.add_function(from_.function(op));
  replace(old, to_.op(now, out));
}

void GraphRewrite::append(const Op& op, Function function, Extent out) {
  Op now = op;
  now.function = to_.add_function(std::move(function));
  replace(op.out, to_.op(now, out));
}

Op GraphRewrite::with_inputs(const Op& op) const {
  Op now = op;
  for (ValueId& in : now.in) in = at(in);
  now.scores_bias = at(op.scores_bias);
  now.kept = at(op.kept);
  return now;
}

ValueId GraphRewrite::exchange(ValueId x, const Communication& with, Extent out) {
  Op op{OpKind::communicate, {x, kNone, kNone}};
  op.exchange = with;
  to_.set_autocast(true);
  to_.set_all_tokens(false);
  return to_.op(op, out);
}

Graph GraphRewrite::finish() {
  for (const Hold& hold : from_.holds())
    hold.saved ? to_.hold_saved(at(hold.value), at(hold.until))
               : to_.hold(at(hold.value), at(hold.until));
  for (const Hold& part : from_.joins()) to_.join(at(part.value), at(part.until));
  for (const ValueId value : from_.named()) to_.name(at(value));
  for (const ValueId value : from_.named_in_model()) to_.name_in_model(at(value));
  for (const ValueId value : from_.named_in_output()) to_.name_in_output(at(value));
  for (const ValueId value : from_.beside()) to_.return_beside(at(value));
  for (const ValueId value : from_.lent()) to_.lend(at(value));
  to_.set_output(at(from_.output()));
  return std::move(to_);
}

}  // namespace shardplan
