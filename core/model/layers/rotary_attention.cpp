#include "model/layers/rotary_attention.h"

namespace shardplan {

RotaryAttention rotary_attention(ModelBuilder& m, std::int64_t hidden, const AttentionShape& s,
                                 bool qkv_bias, bool o_bias, bool head_norms) {
  RotaryAttention a;
  a.shape = s;
  a.q = m.linear("self_attn.q_proj", hidden, s.heads * s.head_dim, qkv_bias);
  a.k = m.linear("self_attn.k_proj", hidden, s.kv_heads * s.head_dim, qkv_bias);
  a.v = m.linear("self_attn.v_proj", hidden, s.kv_heads * s.head_dim, qkv_bias);
  a.o = m.linear("self_attn.o_proj", s.heads * s.head_dim, hidden, o_bias);
  if (head_norms) {
    a.q_norm = m.rms_norm("self_attn.q_norm", s.head_dim);
    a.k_norm = m.rms_norm("self_attn.k_norm", s.head_dim);
  }
  return a;
}

ValueId apply(Graph& g, const RotaryAttention& a, AttentionKind kind, const Positions& at,
              ValueId x) {
  AttentionShape s = a.shape;
  s.mask = at.mask;
  const auto projected = [&](const LinearModule& linear, const std::optional<NormModule>& norm) {
    const ValueId y = apply(g, linear, x);
    return norm ? rms_norm(g, *norm, y) : y;
  };
  // The projections are made before both are turned.
  const ValueId q_straight = projected(a.q, a.q_norm);
  const ValueId k_straight = projected(a.k, a.k_norm);
  const ValueId v = apply(g, a.v, x);
  const ValueId q = rotate(g, at.tables, q_straight, s.heads, s.head_dim);
  const ValueId k = rotate(g, at.tables, k_straight, s.kv_heads, s.head_dim);
  const ValueId out = apply(g, a.o, attention(g, kind, s, q, k, v));
  for (const ValueId local : {x, q}) g.name_until(local, out);
  return out;
}

}  // namespace shardplan
