#include "model/layers/latent_attention.h"

namespace shardplan {
namespace {

ValueId rotate_complex(Graph& g, const RotaryTables& tables, ValueId x) {
  const ValueId angles = g.shared_input(tables.cos, {tables.dim, Scale::sequence});
  const ValueId wide = g.map(OpKind::to_f32, x);
  return g.map(OpKind::to_like, g.map(OpKind::mul, wide, angles), x);
}

}  // namespace

ValueId turn(Graph& g, RotaryForm form, const RotaryTables& tables, ValueId x, std::int64_t heads,
             std::int64_t dim) {
  switch (form) {
    case RotaryForm::complex:
      return rotate_complex(g, tables, x);
    case RotaryForm::interleaved:
      return rotate_pairs(g, tables, x);
    case RotaryForm::half:
      break;
  }
  return rotate(g, tables, x, heads, dim);
}

ValueId rotate_pairs(Graph& g, const RotaryTables& tables, ValueId x) {
  const Extent all = g.value(x).extent;
  const Extent half{all.per / 2, all.scale};
  const ValueId cos = g.shared_input(tables.cos, {tables.dim, Scale::sequence});
  const ValueId sin = g.shared_input(tables.sin, {tables.dim, Scale::sequence});
  const ValueId first = g.view(x, half), second = g.view(x, half);
  const auto mixed = [&](ValueId with_cos, ValueId with_sin) {
    const ValueId a = g.map(OpKind::mul, with_cos, cos);
    return g.map(OpKind::add, a, g.map(OpKind::mul, with_sin, sin));
  };
  const ValueId left = mixed(first, second);
  return g.op({OpKind::cat, {left, mixed(second, first), kNone}}, all);
}

LatentAttention latent_attention(ModelBuilder& m, const LatentShape& s) {
  LatentAttention a;
  a.shape = s;
  const std::int64_t q_width = s.heads * (s.nope + s.rope);
  if (s.q_rank) {
    a.q_a = m.linear("self_attn.q_a_proj", s.hidden, *s.q_rank, s.bias);
    a.q_norm = m.rms_norm("self_attn.q_a_layernorm", *s.q_rank);
    a.q_b = m.linear("self_attn.q_b_proj", *s.q_rank, q_width);
  } else {
    a.q = m.linear("self_attn.q_proj", s.hidden, q_width);
  }
  a.kv_a = m.linear("self_attn.kv_a_proj_with_mqa", s.hidden, s.kv_rank + s.rope, s.bias);
  a.kv_norm = m.rms_norm("self_attn.kv_a_layernorm", s.kv_rank);
  a.kv_b = m.linear("self_attn.kv_b_proj", s.kv_rank, s.heads * (s.nope + s.value));
  a.o = m.linear("self_attn.o_proj", s.heads * s.value, s.hidden, s.bias);
  return a;
}

namespace {

/// Queries before their second product; kNone: there is one alone.
ValueId compressed_queries(Graph& g, const LatentAttention& a, ValueId x) {
  return a.shape.q_rank ? rms_norm(g, a.q_norm, apply(g, a.q_a, x)) : kNone;
}

ValueId queries_of(Graph& g, const LatentAttention& a, ValueId x, ValueId compressed) {
  return compressed == kNone ? apply(g, a.q, x) : apply(g, a.q_b, compressed);
}

/// Megatron's kernels (fusions/fused_mla_yarn_rope_apply.py): queries are turned where they lie,
/// and one kernel makes keys and values of the expanded rows, of which nothing is kept.
ValueId apply_fused(Graph& g, const LatentAttention& a, AttentionKind kind, const Positions& at,
                    ValueId x) {
  const LatentShape& s = a.shape;
  const AttentionShape shape{.heads = s.heads,
                             .kv_heads = s.heads,
                             .head_dim = s.nope + s.rope,
                             .value_dim = s.value,
                             .dropout = s.dropout,
                             .mask = at.mask};
  const ValueId queries = queries_of(g, a, x, compressed_queries(g, a, x));
  const ValueId compressed = apply(g, a.kv_a, x);
  const ValueId turned = slice(g, compressed, s.rope);
  const ValueId expanded =
      apply(g, a.kv_b, rms_norm(g, a.kv_norm, slice(g, compressed, s.kv_rank)));
  const ValueId plain = slice(g, expanded, s.heads * s.nope);
  const ValueId keys =
      g.op({OpKind::cat, {plain, turned, kNone}}, {s.heads * (s.nope + s.rope), Scale::tokens});
  const ValueId values = g.map(OpKind::copy, slice(g, expanded, s.heads * s.value));
  return apply(g, a.o, attention(g, kind, shape, queries, keys, values));
}

}  // namespace

LatentStates latent_states(Graph& g, const LatentAttention& a, RotaryForm form, const Positions& at,
                           ValueId x) {
  const LatentShape& s = a.shape;
  const Extent heads{s.heads * (s.nope + s.rope), Scale::tokens};
  LatentStates out;
  out.compressed = compressed_queries(g, a, x);
  const ValueId q = queries_of(g, a, x, out.compressed);
  const ValueId compressed = apply(g, a.kv_a, x);
  ValueId latent = rms_norm(g, a.kv_norm, slice(g, compressed, s.kv_rank));
  const ValueId q_turned = turn(g, form, at.tables, slice(g, q, s.heads * s.rope), s.heads, s.rope);
  ValueId k_turned = turn(g, form, at.tables, slice(g, compressed, s.rope), 1, s.rope);
  out.shape = {.heads = s.heads,
               .kv_heads = s.heads,
               .head_dim = s.nope + s.rope,
               .value_dim = s.value,
               .dropout = s.dropout,
               .heads_first = true,
               .mask = at.mask};
  through_cache(g, out.shape, latent, k_turned);  // the latent is cached, not what it becomes
  const ValueId q_plain = slice(g, q, s.heads * s.nope);
  out.queries = g.op({OpKind::cat, {q_plain, q_turned, kNone}}, heads);
  // The values stay a slice of the expanded rows; the keys are a copy with the rotary part.
  const ValueId expanded = apply(g, a.kv_b, latent);
  const ValueId k_plain = slice(g, expanded, s.heads * s.nope);
  out.keys = g.op({OpKind::cat, {k_plain, k_turned, kNone}}, {heads.per, out.shape.keys});
  out.values = slice(g, expanded, s.heads * s.value);
  out.locals = {q, compressed, q_turned, k_turned, out.queries, out.keys};
  return out;
}

ValueId apply(Graph& g, const LatentAttention& a, AttentionKind kind, RotaryForm form,
              const Positions& at, ValueId x) {
  if (g.fuses()) return apply_fused(g, a, kind, at, x);
  const LatentStates s = latent_states(g, a, form, at, x);
  const ValueId out = apply(g, a.o, attention(g, kind, s.shape, s.queries, s.keys, s.values));
  for (const ValueId local : s.locals) g.hold(local, out);
  return out;
}

}  // namespace shardplan
