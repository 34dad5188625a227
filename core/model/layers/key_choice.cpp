#include "model/layers/key_choice.h"

namespace shardplan {
namespace {

/// x without its gradient, and with it all that is made of it.
ValueId without_gradient(Graph& g, ValueId x) {
  Op op{OpKind::view, {x, kNone, kNone}};
  op.detached = true;
  return g.op(op, g.value(x).extent);
}

/// The first columns of each head turned, the others behind them.
ValueId turned_heads(Graph& g, const KeyIndexerShape& s, const RotaryTables& tables, ValueId x,
                     std::int64_t heads) {
  const ValueId turned = turn(g, s.rotary, tables, slice(g, x, heads * s.rope), heads, s.rope);
  const ValueId rest = slice(g, x, heads * (s.dim - s.rope));
  return g.op({OpKind::cat, {turned, rest, kNone}}, {heads * s.dim, Scale::tokens});
}

}  // namespace

KeyIndexer key_indexer(ModelBuilder& m, const KeyIndexerShape& s) {
  const bool trains = m.trains();
  m.set_trains(trains && m.options().counts_only);
  KeyIndexer i{.shape = s};
  const std::string at = "self_attn.indexer.";
  i.q = m.linear(at + "wq_b", s.q_rank, s.heads * s.dim);
  i.k = m.linear(at + "wk", s.hidden, s.dim);
  i.k_norm = m.layer_norm(at + "k_norm", s.dim);
  i.weights = m.linear(at + "weights_proj", s.hidden, s.heads);
  m.set_trains(trains);
  return i;
}

ValueId choose_keys(Graph& g, const KeyIndexer& i, const RotaryTables& tables, ValueId x,
                    ValueId compressed) {
  const KeyIndexerShape& s = i.shape;
  const ValueId hidden = without_gradient(g, x);
  const ValueId q_straight = apply(g, i.q, without_gradient(g, compressed));
  const ValueId k_straight = layer_norm(g, i.k_norm, apply(g, i.k, hidden));
  const ValueId q = turned_heads(g, s, tables, q_straight, s.heads);
  const ValueId k = turned_heads(g, s, tables, k_straight, 1);
  // torch.matmul gives every query keys of its own where there are several sequences.
  const ValueId wide_q = g.map(OpKind::to_f32, q), wide_k = g.map(OpKind::to_f32, k);
  const ValueId spread = g.op({OpKind::fold_heads, {wide_k, kNone, kNone}}, {s.dim, Scale::scores});
  Op product{OpKind::matmul, {wide_q, spread, kNone}};
  product.work = {s.heads * s.dim, Scale::scores};
  product.autocast = false;
  const ValueId scaled = g.map(OpKind::scalar, g.op(product, {s.heads, Scale::scores}));
  const ValueId scores = g.map(OpKind::relu, scaled);
  const ValueId weights = g.map(OpKind::scalar, g.map(OpKind::to_f32, apply(g, i.weights, hidden)));
  Op sum{OpKind::matmul, {weights, scores, kNone}};
  sum.work = {s.heads, Scale::scores};
  sum.autocast = false;
  const ValueId masked = g.map(OpKind::scalar, g.op(sum, {1, Scale::scores}));
  // fp32 scores and int64 places of the chosen keys, then places of int32.
  const ValueId best = g.op({OpKind::copy, {masked, kNone, kNone}}, {3 * s.chosen, Scale::tokens});
  const ValueId choice = g.op({OpKind::copy, {best, kNone, kNone}}, {s.chosen, Scale::tokens});
  for (const ValueId local : {q, k, scores, weights, masked}) g.hold(local, choice);
  return choice;
}

ValueId carried_choice(Graph& g, std::int64_t chosen, ValueId x) {
  Op op{OpKind::copy, {x, kNone, kNone}};
  op.detached = true;
  return g.map(OpKind::to_f32, g.op(op, {chosen, Scale::tokens}));
}

ValueId attention_to_chosen(Graph& g, AttentionKind kind, const AttentionShape& shape, ValueId q,
                            ValueId k, ValueId v, ValueId choice) {
  const Extent places{2 * (g.value(choice).extent.per), Scale::tokens};
  const ValueId wide = g.op({OpKind::copy, {choice, kNone, kNone}}, places);
  const ValueId left_out = g.op({OpKind::compare, {wide, kNone, kNone}}, {1, Scale::scores});
  ValueId mask = kNone, mixed = kNone;
  if (kind == AttentionKind::sdpa) {
    mask = g.map(OpKind::compare, left_out);
    mixed = masked_attention(g, shape, q, k, v);
  } else {
    mask = g.map(OpKind::scalar, g.shared_input(shape.mask, {1, Scale::scores}));
    mixed = attention(g, kind, shape, q, k, v, mask);
  }
  for (const ValueId local : {left_out, mask}) g.hold(local, mixed);
  return mixed;
}

}  // namespace shardplan
