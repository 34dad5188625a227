#include "model/layers/rotary_attention.h"

#include <string>

namespace shardplan {

RotaryAttention rotary_attention(ModelBuilder& m, std::int64_t hidden, const AttentionShape& s,
                                 bool qkv_bias, bool o_bias, bool head_norms,
                                 std::string_view name) {
  const std::string at(name);
  RotaryAttention a;
  a.shape = s;
  a.q = m.linear(at + ".q_proj", hidden, s.heads * s.head_dim, qkv_bias);
  a.k = m.linear(at + ".k_proj", hidden, s.kv_heads * s.head_dim, qkv_bias);
  a.v = m.linear(at + ".v_proj", hidden, s.kv_heads * s.head_dim, qkv_bias);
  a.o = m.linear(at + ".o_proj", s.heads * s.head_dim, hidden, o_bias);
  if (head_norms) {
    a.q_norm = m.rms_norm(at + ".q_norm", s.head_dim);
    a.k_norm = m.rms_norm(at + ".k_norm", s.head_dim);
  }
  return a;
}

ValueId apply(Graph& g, const RotaryAttention& a, AttentionKind kind, const Positions& at,
              ValueId x) {
  AttentionShape s = a.shape;
  s.mask = at.mask;
  const auto projected = [&](const LinearModule& linear, const std::optional<NormModule>& norm) {
    const ValueId y = at.tables.dim > 0 ? split_heads(g, apply(g, linear, x)) : apply(g, linear, x);
    return norm ? rms_norm(g, *norm, y) : y;
  };
  ValueId q = projected(a.q, a.q_norm);
  ValueId k = projected(a.k, a.k_norm);
  if (a.scales_keys) k = g.map(OpKind::scalar, k);
  const ValueId v = apply(g, a.v, x);
  if (at.tables.dim > 0)
    rotate_both(g, rotation(g, at.tables, g.value(q).extent.scale), q, s.heads, k, s.kv_heads,
                s.head_dim);
  const ValueId out = apply(g, a.o, attention(g, kind, s, q, k, v));
  name_locals(g, x, q, k, v, out);
  return out;
}

}  // namespace shardplan
