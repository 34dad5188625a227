#include "model/layers/encoder_layer.h"

#include <string>

namespace shardplan {

EncoderLayer encoder_layer(ModelBuilder& m, const EncoderShape& s, std::string_view suffix) {
  EncoderLayer l;
  const auto project = [&](const char* name) {
    return m.linear(std::string("attention.self.") + name + std::string(suffix), s.hidden, s.hidden,
                    true);
  };
  l.query = project("query");
  l.key = project("key");
  l.value = project("value");
  l.out = m.linear("attention.output.dense", s.hidden, s.hidden, true);
  l.attention_norm = m.layer_norm("attention.output.LayerNorm", s.hidden);
  l.up = m.linear("intermediate.dense", s.hidden, s.ffn, true);
  l.down = m.linear("output.dense", s.ffn, s.hidden, true);
  l.norm = m.layer_norm("output.LayerNorm", s.hidden);
  return l;
}

ValueId after_attention(Graph& g, const EncoderLayer& l, const EncoderShape& s, ValueId x,
                        ValueId context) {
  const ValueId mixed = apply(g, l.out, context);
  const ValueId attended =
      layer_norm(g, l.attention_norm, g.map(OpKind::add, dropout(g, mixed, s.hidden_dropout), x));
  const ValueId inner = activate(g, s.activation, apply(g, l.up, attended));
  const ValueId narrow = dropout(g, apply(g, l.down, inner), s.hidden_dropout);
  return layer_norm(g, l.norm, g.map(OpKind::add, narrow, attended));
}

ValueId apply(Graph& g, const EncoderLayer& l, const EncoderShape& s, AttentionKind kind,
              ValueId x) {
  const ValueId q = apply(g, l.query, x);
  const ValueId k = apply(g, l.key, x);
  const ValueId v = apply(g, l.value, x);
  const AttentionShape shape{.heads = s.heads,
                             .kv_heads = s.heads,
                             .head_dim = s.hidden / s.heads,
                             .dropout = s.attention_dropout,
                             .causal = false,
                             .softmax_f32 = false};
  return after_attention(g, l, s, x, attention(g, kind, shape, q, k, v));
}

}  // namespace shardplan
