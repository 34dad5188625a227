#include "model/layers/sequence_layer.h"

#include <string>

namespace shardplan {
namespace {

SequenceAttention declare(ModelBuilder& m, const SequenceShape& s, const std::string& name) {
  SequenceAttention a;
  a.k = m.linear(name + ".k_proj", s.hidden, s.hidden, s.key_bias);
  a.v = m.linear(name + ".v_proj", s.hidden, s.hidden, true);
  a.q = m.linear(name + ".q_proj", s.hidden, s.hidden, true);
  a.out = m.linear(name + ".out_proj", s.hidden, s.hidden, true);
  return a;
}

ValueId attend(Graph& g, const SequenceAttention& a, const SequenceShape& s, AttentionKind kind,
               ValueId x, ValueId source, std::int32_t mask) {
  const auto projected = [&](const LinearModule& linear, ValueId from) {
    const ValueId y = apply(g, linear, from);
    return s.heads_first ? g.map(OpKind::copy, y) : y;
  };
  const ValueId q = projected(a.q, x);
  const ValueId k = projected(a.k, source);
  const ValueId v = projected(a.v, source);
  const AttentionShape shape{
      .heads = s.heads,
      .kv_heads = s.heads,
      .head_dim = s.hidden / s.heads,
      .queries = g.value(x).extent.scale,
      .keys = g.value(source).extent.scale,
      .dropout = s.attention_dropout,
      .heads_first = s.heads_first,
      .causal = source == x && g.value(x).extent.scale == Scale::target_tokens,
      .softmax_f32 = false,
      .mask = mask};
  const bool masked = s.padded && kind == AttentionKind::sdpa;
  // Kernels that give their output the layout of q leave a copy to the projection.
  const auto under_mask = [&] {
    const ValueId out = masked_attention(g, shape, q, k, v);
    return s.heads_first ? g.map(OpKind::copy, out) : out;
  };
  const ValueId mixed = masked ? under_mask() : attention(g, kind, shape, q, k, v);
  return dropout(g, apply(g, a.out, mixed), s.dropout);
}

}  // namespace

SequenceShape read_sequence_shape(const ModelConfig& c, std::string_view prefix,
                                  std::int64_t hidden, const SequenceShape& defaults) {
  SequenceShape s = defaults;
  const std::string side(prefix);
  const std::string heads = side + "_attention_heads", ffn = side + "_ffn_dim";
  s.hidden = hidden;
  s.heads = c.count({heads}, defaults.heads);
  s.ffn = c.count({ffn}, defaults.ffn);
  c.require_divisible("d_model", hidden, heads, s.heads);
  s.activation = read_activation(c, "activation_function", defaults.activation_name);
  s.dropout = c.number("dropout", defaults.dropout);
  s.attention_dropout = c.number("attention_dropout", defaults.attention_dropout);
  s.activation_dropout = c.number("activation_dropout", 0.0);
  return s;
}

SequenceLayer sequence_layer(ModelBuilder& m, const SequenceShape& s, bool decoder) {
  SequenceLayer l;
  l.shape = s;
  l.self = declare(m, s, "self_attn");
  l.self.norm = m.layer_norm("self_attn_layer_norm", s.hidden);
  if (decoder) {
    l.cross = declare(m, s, "encoder_attn");
    l.cross->norm = m.layer_norm("encoder_attn_layer_norm", s.hidden);
  }
  l.fc1 = m.linear("fc1", s.hidden, s.ffn, true);
  l.fc2 = m.linear("fc2", s.ffn, s.hidden, true);
  l.norm = m.layer_norm("final_layer_norm", s.hidden);
  return l;
}

ValueId apply(Graph& g, const SequenceLayer& l, AttentionKind kind, ValueId x, ValueId encoded,
              std::int32_t mask) {
  const SequenceShape& s = l.shape;
  const auto before = [&](const NormModule& norm, ValueId v) {
    return s.norm_first ? layer_norm(g, norm, v) : v;
  };
  const auto after = [&](const NormModule& norm, ValueId v) {
    return s.norm_first ? v : layer_norm(g, norm, v);
  };
  const ValueId in = before(l.self.norm, x);
  x = after(l.self.norm, g.map(OpKind::add, x, attend(g, l.self, s, kind, in, in, mask)));
  if (l.cross) {
    const ValueId query = before(l.cross->norm, x);
    const ValueId mixed = attend(g, *l.cross, s, kind, query, encoded, kNone);
    x = after(l.cross->norm, g.map(OpKind::add, x, mixed));
  }
  const ValueId inner = activate(g, s.activation, apply(g, l.fc1, before(l.norm, x)));
  const ValueId narrow = apply(g, l.fc2, dropout(g, inner, s.activation_dropout));
  return after(l.norm, g.map(OpKind::add, x, dropout(g, narrow, s.dropout)));
}

}  // namespace shardplan
