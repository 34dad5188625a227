// What a layer of Gemma 3n does with the streams of hidden states (modeling_gemma3n.py,
// Gemma3nTextDecoderLayer), and what a run of such layers shares.
#include "model/architectures/gemma3n_layers.h"

#include "model/architectures/gemma4.h"

namespace shardplan {
namespace {

/// tanh of the router's numbers of one stream, a number for each of them.
ValueId modalities(Graph& g, const Gemma3nAltUp& a, ValueId x) {
  const ValueId scaled = g.map(OpKind::scalar, gemma4_norm(g, a.norm, x));
  const ValueId routed = g.map(OpKind::to_f32, apply(g, a.router, scaled));
  return g.map(OpKind::to_like, g.map(OpKind::tanh, routed), x);
}

ValueId add_in_place(Graph& g, ValueId x, ValueId y, InPlace in_place) {
  Op sum{OpKind::add, {x, y, kNone}};
  sum.in_place = in_place;
  return g.op(sum, g.value(x).extent);
}

/// Each token's streams times a matrix of its own, beside the streams.
ValueId predict(Graph& g, const Gemma3n& t, const Gemma3nAltUp& a, ValueId streams) {
  const Extent all = g.value(streams).extent;
  const ValueId matrix = apply(g, a.prediction, modalities(g, a, slice(g, streams, t.hidden)));
  Op product{OpKind::matmul, {streams, matrix, kNone}};
  product.work = {checked_mul(all.per, t.streams), all.scale};
  const ValueId mixed = g.op(product, all);
  const ValueId sum = add_in_place(g, mixed, streams, InPlace::view);
  const ValueId out = g.map(OpKind::to_like, g.map(OpKind::copy, sum), streams);
  g.hold(sum, out);
  return out;
}

/// Adapters of a module whose weight alone the class reads: they have no part in `x` and get no
/// gradient. Added to it they keep nothing and take a gradient of their own size, so that all that
/// trains has one.
ValueId beside_adapters(Graph& g, const LinearModule& m, ValueId x) {
  const auto add = [&](ModuleId module, ParameterId id) {
    if (id == kNone) return;
    Op parameter{OpKind::parameter};
    parameter.module = module;
    parameter.weight = id;
    const ValueId value = g.op(parameter, {per(g, x), Scale::one});
    x = g.map(OpKind::add, x, g.map(OpKind::to_like, value, x));
  };
  if (m.rotation) add(m.rotation->module, m.rotation->weight);
  if (!m.lora) return x;
  add(m.lora->a_module, m.lora->a);
  add(m.lora->b_module, m.lora->b);
  add(m.lora->magnitude_module, m.lora->magnitude);
  return x;
}

/// What corrects the streams: in training a clamped copy of the weight is multiplied by.
ValueId correction(Graph& g, const Gemma3n& t, const Gemma3nAltUp& a, ValueId x) {
  const ValueId factors = modalities(g, a, x);
  Op weight{OpKind::parameter};
  weight.module = a.correction.module;
  weight.weight = a.correction.weight;
  const ValueId clamped =
      g.map(OpKind::clamp, g.op(weight, {checked_mul(t.streams, t.streams), Scale::one}));
  Op product{OpKind::matmul, {factors, clamped, kNone}};
  product.work = {checked_mul(t.streams, t.streams), g.value(factors).extent.scale};
  const ValueId corrections = g.op(product, g.value(factors).extent);
  return g.map(OpKind::scalar, beside_adapters(g, a.correction, corrections));
}

/// How far `activated` is from what was predicted of its stream, added to all streams.
ValueId correct(Graph& g, const Gemma3n& t, const Gemma3nAltUp& a, ValueId predictions,
                ValueId activated) {
  // The order of the class: the router first.
  const ValueId factors = correction(g, t, a, activated);
  const ValueId difference = g.map(OpKind::add, activated, slice(g, predictions, t.hidden));
  const ValueId repeated =
      g.op({OpKind::copy, {difference, kNone, kNone}}, g.value(predictions).extent);
  const ValueId corrected =
      add_in_place(g, g.map(OpKind::mul, repeated, factors), predictions, InPlace::whole);
  return g.map(OpKind::to_like, corrected, activated);
}

ValueId attend(Graph& g, const Gemma3nLayer& l, bool lends, const Gemma3nContext& context,
               ValueId x) {
  const AttentionShape& s = context.shape;
  const ValueId q =
      rotate(g, context.tables, gemma4_norm(g, l.q_norm, apply(g, l.q, x)), s.heads, s.head_dim);
  if (!l.k) {
    const Extent grouped{s.kv_heads * s.head_dim, Scale::tokens};
    const ValueId k = g.shared_input(context.keys, grouped);
    const ValueId v = g.shared_input(context.values, grouped);
    return apply(g, l.o, attention(g, context.kind, s, q, k, v));
  }
  const ValueId k = rotate(g, context.tables, gemma4_norm(g, l.k_norm, apply(g, *l.k, x)),
                           s.kv_heads, s.head_dim);
  const ValueId v = gemma4_norm(g, apply(g, *l.v, x), s.head_dim);
  for (const ValueId lent : {k, v})
    if (lends) g.lend(lent);
  return apply(g, l.o, attention(g, context.kind, s, q, k, v));
}

/// relu(x − (mean + deviation·c)): what is left of the gates (Gemma3nTextMLP._gaussian_topk).
ValueId largest(Graph& g, ValueId gates) {
  const Extent row{1, g.value(gates).extent.scale};
  const ValueId mean = g.op({OpKind::mean, {gates, kNone, kNone}}, row);
  Op scaled{OpKind::masked, {g.op({OpKind::deviation, {gates, kNone, kNone}}, row), kNone, kNone}};
  scaled.side = {4, Scale::one};  // a number in a tensor
  const ValueId cutoff = g.map(OpKind::add, mean, g.op(scaled, row));
  return g.map(OpKind::relu, g.map(OpKind::add, gates, cutoff));
}

ValueId feed_forward(Graph& g, const Gemma3n& t, const Gemma3nLayer& l, bool sparse, ValueId x) {
  ValueId gates = apply(g, l.mlp.gate, x);
  if (sparse) gates = largest(g, gates);
  const ValueId active = activate(g, t.activation, gates);
  return apply(g, l.mlp.down, g.map(OpKind::mul, active, apply(g, l.mlp.up, x)));
}

/// What the embedding of the layer adds to all streams but the first.
ValueId own_part(Graph& g, const Gemma3n& t, const Gemma3nLayer& l, const Gemma3nContext& context,
                 ValueId corrected) {
  ValueId first = g.op({OpKind::copy, {slice(g, corrected, t.hidden), kNone, kNone}},
                       {t.hidden, Scale::tokens});
  if (t.scales) {
    Op scale{OpKind::parameter};
    scale.module = l.gate_each.module;
    scale.weight = l.altup.scale;
    const ValueId factor = g.op(scale, {t.hidden, Scale::one});
    const ValueId scaled = g.map(OpKind::mul, g.map(OpKind::to_like, first, factor), factor);
    first = g.map(OpKind::to_like, scaled, first);
  }
  const ValueId all = g.shared_input(context.each, {t.layers * t.each, Scale::tokens});
  const ValueId gate = activate(g, t.activation, apply(g, l.gate_each, first));
  const ValueId gated = g.map(OpKind::mul, gate, slice(g, all, t.each));
  return gemma4_norm(g, l.after_each, apply(g, l.project_each, gated));
}

}  // namespace

void gemma3n_layer(Graph& g, const Gemma3n& t, const Gemma3nLayer& l, const Gemma3nKind& kind,
                   const Gemma3nContext& context) {
  const ValueId streams = g.chained_input({checked_mul(t.streams, t.hidden), Scale::tokens});
  const ValueId predictions = predict(g, t, l.altup, streams);
  const ValueId active = slice(g, predictions, t.hidden);
  const ValueId normal = gemma4_norm(g, l.before, active);
  const ValueId low_rank = apply(g, l.right, apply(g, l.left, normal));
  const ValueId residual = g.map(OpKind::add, normal, gemma4_norm(g, l.after_residual, low_rank));
  const ValueId mixed = gemma4_norm(g, l.after, attend(g, l, kind.lends, context, normal));
  const ValueId gated = g.map(OpKind::add, active, mixed);
  const ValueId middle = g.map(OpKind::scalar, g.map(OpKind::add, gated, residual));
  const ValueId before = gemma4_norm(g, l.before_mlp, middle);
  const ValueId fed = feed_forward(g, t, l, kind.sparse, before);
  const ValueId normed = gemma4_norm(g, l.after_mlp, fed);
  const ValueId activated = g.map(OpKind::add, middle, normed);
  const ValueId corrected = correct(g, t, l.altup, predictions, activated);
  const ValueId out =
      add_in_place(g, corrected, own_part(g, t, l, context, corrected), InPlace::part);
  // The layer's forward has a name for each of them until it returns.
  for (const ValueId local :
       {predictions, normal, residual, mixed, gated, middle, before, fed, normed, activated})
    g.hold(local, out);
  g.set_output(out);
}

}  // namespace shardplan
