#include "model/layers/attention.h"

namespace shardplan {
namespace {

std::int64_t value_dim(const AttentionShape& s) {
  return s.value_dim > 0 ? s.value_dim : s.head_dim;
}

/// repeat_kv: expands and reshapes to all heads, which copies when there is anything to repeat.
ValueId repeat_heads(Graph& g, const AttentionShape& s, ValueId x) {
  if (s.kv_heads == s.heads) return x;
  const Extent given = g.value(x).extent;
  return g.op({OpKind::copy, {x, kNone, kNone}}, {given.per / s.kv_heads * s.heads, given.scale});
}

/// Of one head: pairs of a query and a key.
Extent pairs(const AttentionShape& s) {
  if (s.within > 0) return {s.within, s.queries};
  if (s.one_sequence) return {1, Scale::patch_square};
  return {1, score_scale(s.queries, s.keys)};
}

/// `per` for each pair.
Extent each_pair(const AttentionShape& s, std::int64_t per) {
  const Extent all = pairs(s);
  return {checked_mul(per, all.per), all.scale};
}

OpKind maker(const Graph& g, ValueId value) {
  for (const Op& op : g.ops())
    if (op.out == value) return op.kind;
  return OpKind::view;
}

/// Megatron projects queries, keys and values at once. Where the first two have been turned, the
/// kernel is given a copy of the values; computed again, attention keeps the whole projection for
/// their sake (dot_product_attention/utils.py, get_qkv_layout; transformer/attention.py,
/// _checkpointed_attention_forward).
void keep_as_megatron(Graph& g, Op& op) {
  const bool turned = maker(g, op.in[0]) == OpKind::rotary;
  const OpKind values = maker(g, op.in[2]);
  op.again = g.attention_again();
  op.joined = op.again && turned && values == OpKind::linear;
  if (!op.again && turned && values == OpKind::view) op.in[2] = g.map(OpKind::copy, op.in[2]);
}

/// flash-attn 2 wants values as wide as queries: transformers pads them and cuts the result
/// (integrations/flash_attention.py).
bool pads_values(const Graph& g, const AttentionShape& s) {
  return g.flash_attn() && !g.fuses() && value_dim(s) != s.head_dim;
}

ValueId fused(Graph& g, const AttentionShape& given, ValueId q, ValueId k, ValueId v) {
  AttentionShape s = given;
  if (pads_values(g, s)) {
    v = g.op({OpKind::copy, {v, kNone, kNone}}, {s.kv_heads * s.head_dim, g.value(v).extent.scale});
    s.value_dim = s.head_dim;
  }
  Op op{OpKind::sdpa, {q, k, v}};
  if (g.fuses()) keep_as_megatron(g, op);
  op.work = each_pair(s, s.heads * (s.head_dim + value_dim(s)));
  op.side = {s.heads, s.queries};
  op.within = s.within;
  op.one_by_one = s.one_by_one;
  op.causal = s.causal;
  op.drops = s.dropout > 0 && !g.cached();
  // The kernels of Transformer Engine and of flash-attn take the window itself.
  if (s.window > 0 && !g.fuses() && !g.flash_attn()) {
    op.mask = {1, op.work.scale};
    op.mask_from = s.window;
    const Scale square = g.cached() ? Scale::context_square : Scale::square;
    if (s.mask != kNone) g.shared_input(s.mask, {1, square});
  }
  const ValueId out = g.op(op, {s.heads * value_dim(s), s.queries});
  if (pads_values(g, given))  // reading the cut result token by token copies it
    return g.op({OpKind::copy, {out, kNone, kNone}}, {s.heads * value_dim(given), s.queries});
  return s.heads_first && !g.fuses() ? g.map(OpKind::copy, out) : out;
}

/// What a batched product reads: heads folded into the batch. One head that serves all of them is
/// expanded without a copy before.
ValueId batched(Graph& g, const AttentionShape& s, ValueId x, std::int64_t heads) {
  if (heads != s.heads && heads != 1) return repeat_heads(g, s, x);
  if (s.one_by_one) return g.view(x, g.value(x).extent);
  // What comes out of a cache has its heads in order already.
  if (heads == s.heads && g.value(x).extent.scale == Scale::context_tokens)
    return g.view(x, g.value(x).extent);
  const Extent given = g.value(x).extent;
  return g.op({OpKind::fold_heads, {x, kNone, kNone}}, {given.per / heads * s.heads, given.scale});
}

/// The scaled scores with their mask, [b, heads, s, s].
ValueId masked_scores(Graph& g, const AttentionShape& s, ValueId q, ValueId k, ValueId bias) {
  const Extent extent = each_pair(s, s.heads);
  if (s.scores_f32) {
    q = g.map(OpKind::to_f32, q);
    k = g.map(OpKind::to_f32, k);
  }
  const ValueId queries = batched(g, s, q, s.heads), keys = batched(g, s, k, s.kv_heads);
  Op product{OpKind::matmul, {queries, keys, kNone}};
  product.work = each_pair(s, s.heads * s.head_dim);
  ValueId scores = g.map(OpKind::scalar, g.op(product, extent));
  if (s.softcap) {
    const ValueId squashed = g.map(OpKind::tanh, g.map(OpKind::scalar, scores));
    scores = g.map(OpKind::scalar, squashed);
  }
  if (s.names_scores)
    for (const ValueId local : {queries, keys, scores}) g.name(local);
  if (bias != kNone) return g.map(OpKind::add, scores, bias);
  if (s.mask == kNone) return g.map(OpKind::scalar, scores);
  return g.map(OpKind::add, scores, g.shared_input(s.mask, {1, extent.scale}));
}

/// Megatron's DotProductAttention: the product scales, one kernel masks and makes probabilities in
/// the inputs' type.
ValueId fused_softmax(Graph& g, const AttentionShape& s, ValueId q, ValueId k, ValueId v) {
  const Extent extent{s.heads, score_scale(s.queries, s.keys)};
  Op product{OpKind::matmul, {q, repeat_heads(g, s, k), kNone}};
  product.work = {s.heads * s.head_dim, extent.scale};
  const ValueId probabilities =
      dropout(g, g.map(OpKind::softmax, g.op(product, extent)), s.dropout);
  Op mix{OpKind::matmul, {probabilities, repeat_heads(g, s, v), kNone}};
  mix.work = {s.heads * value_dim(s), extent.scale};
  return g.map(OpKind::copy, g.op(mix, {s.heads * value_dim(s), s.queries}));
}

ValueId eager(Graph& g, const AttentionShape& given, ValueId q, ValueId k, ValueId v,
              ValueId bias) {
  if (g.fuses() && bias == kNone) return fused_softmax(g, given, q, k, v);
  AttentionShape s = given;
  const ValueId all_queries = q;
  // Keys and values are repeated before anything is done with either; one head is only expanded.
  if (g.cached() && s.kv_heads != 1) {
    k = repeat_heads(g, s, k);
    v = repeat_heads(g, s, v);
    s.kv_heads = s.heads;
  }
  const ValueId masked = masked_scores(g, s, q, k, bias);
  const ValueId wide = g.map(s.softmax_f32 ? OpKind::softmax_f32 : OpKind::softmax, masked);
  // Back to the dtype of q; where the softmax is not told its dtype, to that of v.
  const ValueId narrow = g.map(OpKind::to_like, wide, s.softmax_f32 ? q : v);
  if (s.names_scores)
    g.name(masked);
  else
    g.hold(masked, narrow);  // of one name
  const ValueId probabilities = dropout(g, narrow, s.dropout);
  Op mix{OpKind::matmul, {probabilities, batched(g, s, v, s.kv_heads), kNone}};
  mix.work = each_pair(s, s.heads * value_dim(s));
  const ValueId context = g.op(mix, {s.heads * value_dim(s), s.queries});
  // Returned with the result, as the attention's weights.
  s.returns_weights ? g.return_beside(probabilities) : g.name(probabilities);
  const ValueId out = g.map(OpKind::copy, context);
  for (const ValueId local : {all_queries, k, v}) g.hold(local, out);
  return out;
}

ValueId append(Graph& g, CachePart part, std::int64_t window, ValueId x) {
  Op op{OpKind::cache, {x, kNone, kNone}};
  op.part = part;
  op.window = window;
  return g.op(op, {g.value(x).extent.per, Scale::context_tokens});
}

}  // namespace

Scale score_scale(Scale queries, Scale keys) {
  if (keys == Scale::context_tokens) return Scale::context_scores;
  if (queries == Scale::tokens) return Scale::scores;
  if (queries == Scale::patches) return Scale::patch_scores;
  return keys == Scale::tokens ? Scale::cross_scores : Scale::target_scores;
}

std::int32_t share_causal_mask(ModelBuilder& m, AttentionKind kind, Scale scale) {
  if (m.options().cached && scale == Scale::scores) scale = Scale::context_scores;
  return kind == AttentionKind::sdpa ? kNone : m.share("causal_mask", {1, scale});
}

std::int32_t share_window_mask(ModelBuilder& m, AttentionKind kind, std::int64_t window) {
  if (kind != AttentionKind::sdpa || window == 0) return share_causal_mask(m, kind);
  const bool takes_window = m.options().kernels == KernelSet::megatron || m.options().flash_attn;
  return takes_window ? kNone : m.share_window_mask(window);
}

void name_locals(Graph& g, ValueId x, ValueId q, ValueId k, ValueId v, ValueId out) {
  for (const ValueId local : {x, q}) g.hold(local, out);
  if (g.cached()) return;
  for (const ValueId local : {k, v}) g.hold(local, out);
}

void through_cache(Graph& g, AttentionShape& shape, ValueId& k, ValueId& v) {
  if (!g.cached() || !shape.causal || shape.keys != shape.queries) return;
  const ValueId new_keys = k, new_values = v;
  k = append(g, CachePart::keys, shape.window, new_keys);
  v = append(g, CachePart::values, shape.window, new_values);
  g.hold(new_keys, v);  // both names are bound anew when both are appended
  shape.keys = Scale::context_tokens;
}

ValueId attention(Graph& g, AttentionKind kind, const AttentionShape& given, ValueId q, ValueId k,
                  ValueId v, ValueId bias) {
  AttentionShape shape = given;
  through_cache(g, shape, k, v);
  return kind == AttentionKind::sdpa && bias == kNone ? fused(g, shape, q, k, v)
                                                      : eager(g, shape, q, k, v, bias);
}

ValueId masked_attention(Graph& g, const AttentionShape& given, ValueId q, ValueId k, ValueId v,
                         ValueId bias, std::int64_t columns) {
  AttentionShape s = given;
  through_cache(g, s, k, v);
  Op op{OpKind::sdpa, {q, k, v}};
  op.work = each_pair(s, s.heads * (s.head_dim + value_dim(s)));
  op.side = {s.heads, s.queries};
  op.within = s.within;
  op.scores_bias = bias;
  if (bias == kNone) op.mask = columns > 0 ? Extent{columns, s.queries} : Extent{1, op.work.scale};
  return g.op(op, {s.heads * value_dim(s), s.queries});
}

ValueId math_attention(Graph& g, const AttentionShape& given, ValueId q, ValueId k, ValueId v,
                       ValueId bias) {
  AttentionShape s = given;
  through_cache(g, s, k, v);
  const Extent scores{s.heads, score_scale(s.queries, s.keys)};
  g.set_autocast(false);  // it casts the call's arguments, not what the call does with them
  const ValueId wide_queries = g.map(OpKind::to_f32, q);
  const ValueId queries = g.map(OpKind::scalar, wide_queries);
  const ValueId keys = g.map(OpKind::scalar, g.map(OpKind::to_f32, k));
  const ValueId values = g.map(OpKind::to_f32, v);
  Op product{OpKind::matmul, {queries, batched(g, s, keys, s.kv_heads), kNone}};
  product.work = {s.heads * s.head_dim, scores.scale};
  ValueId logits = g.op(product, scores);
  if (bias != kNone) logits = g.map(OpKind::add, logits, bias);
  const ValueId softmax = g.map(OpKind::softmax, logits);
  if (g.cached()) {  // rows that are masked whole are looked for, and filled in place
    const ValueId masked = g.map(OpKind::compare, logits);
    for (const ValueId local : {wide_queries, queries, keys, values, logits}) g.hold(local, masked);
    g.hold(softmax, masked);
  }
  const ValueId probabilities = dropout(g, softmax, s.dropout);
  Op mix{OpKind::matmul, {probabilities, batched(g, s, values, s.kv_heads), kNone}};
  mix.work = {s.heads * value_dim(s), scores.scale};
  const ValueId context = g.op(mix, {s.heads * value_dim(s), s.queries});
  const ValueId out = g.map(OpKind::copy, g.map(OpKind::to_like, context, q));
  for (const ValueId local : {q, k, v}) g.hold(local, out);
  g.set_autocast(true);
  return out;
}

}  // namespace shardplan
