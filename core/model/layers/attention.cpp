#include "model/layers/attention.h"

namespace shardplan {
namespace {

std::int64_t value_dim(const AttentionShape& s) {
  return s.value_dim > 0 ? s.value_dim : s.head_dim;
}

/// repeat_kv: expands and reshapes to all heads, which copies when there is anything to repeat.
ValueId repeat_heads(Graph& g, const AttentionShape& s, ValueId x, std::int64_t dim) {
  if (s.kv_heads == s.heads) return x;
  return g.op({OpKind::copy, {x, kNone, kNone}}, {s.heads * dim, s.keys});
}

ValueId fused(Graph& g, const AttentionShape& s, ValueId q, ValueId k, ValueId v) {
  Op op{OpKind::sdpa, {q, k, v}};
  op.work = {s.heads * (s.head_dim + value_dim(s)), score_scale(s.queries, s.keys)};
  op.side = {s.heads, s.queries};
  return g.op(op, {s.heads * value_dim(s), s.queries});
}

ValueId eager(Graph& g, const AttentionShape& s, ValueId q, ValueId k, ValueId v, ValueId bias) {
  const Extent scores{s.heads, score_scale(s.queries, s.keys)};
  const ValueId keys = repeat_heads(g, s, k, s.head_dim);
  const ValueId values = repeat_heads(g, s, v, value_dim(s));
  // Batched products read contiguous copies of the transposed heads.
  Op product{OpKind::matmul, {g.map(OpKind::copy, q), g.map(OpKind::copy, keys), kNone}};
  product.work = {s.heads * s.head_dim, scores.scale};
  const ValueId logits = g.map(OpKind::scalar, g.op(product, scores));
  const ValueId masked =
      bias == kNone ? g.map(OpKind::scalar, logits) : g.map(OpKind::add, logits, bias);
  const ValueId wide = g.map(OpKind::softmax_f32, masked);
  const ValueId probabilities = dropout(g, g.map(OpKind::to_like, wide, q), s.dropout);
  Op mix{OpKind::matmul, {probabilities, g.map(OpKind::copy, values), kNone}};
  mix.work = {s.heads * value_dim(s), scores.scale};
  const ValueId context = g.op(mix, {s.heads * value_dim(s), s.queries});
  return g.map(OpKind::copy, context);
}

}  // namespace

Scale score_scale(Scale queries, Scale keys) {
  if (queries == Scale::tokens) return Scale::scores;
  return keys == Scale::tokens ? Scale::cross_scores : Scale::target_scores;
}

RotaryTables share_rotary(ModelBuilder& m, std::int64_t rotary_dim, Scale scale) {
  return {m.share("cos", {rotary_dim, scale}), m.share("sin", {rotary_dim, scale}), rotary_dim};
}

ValueId rotate(Graph& g, const RotaryTables& tables, ValueId x, std::int64_t heads,
               std::int64_t head_dim) {
  const Extent all = g.value(x).extent;
  const Extent part{heads * tables.dim, all.scale};
  const Scale table_scale =
      all.scale == Scale::target_tokens ? Scale::target_sequence : Scale::sequence;
  const ValueId cos = g.shared_input(tables.cos, {tables.dim, table_scale});
  const ValueId sin = g.shared_input(tables.sin, {tables.dim, table_scale});
  const ValueId turned = tables.dim == head_dim ? x : g.view(x, part);
  const ValueId straight = g.map(OpKind::mul, turned, cos);
  const Extent half{part.per / 2, part.scale};
  const ValueId negated = g.op({OpKind::scalar, {g.view(turned, half), kNone, kNone}}, half);
  const ValueId swapped = g.op({OpKind::cat, {negated, g.view(turned, half), kNone}}, part);
  const ValueId sum = g.map(OpKind::add, straight, g.map(OpKind::mul, swapped, sin));
  if (tables.dim == head_dim) return sum;
  const ValueId rest = g.view(x, {all.per - part.per, all.scale});
  return g.op({OpKind::cat, {sum, rest, kNone}}, all);
}

ValueId attention(Graph& g, AttentionKind kind, const AttentionShape& shape, ValueId q, ValueId k,
                  ValueId v, ValueId bias) {
  return kind == AttentionKind::sdpa && bias == kNone ? fused(g, shape, q, k, v)
                                                      : eager(g, shape, q, k, v, bias);
}

}  // namespace shardplan
