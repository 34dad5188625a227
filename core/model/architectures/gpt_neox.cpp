// GPT-NeoX 20B and Pythia (models/gpt_neox): one linear for q, k and v, partial rotary embeddings,
// and usually a parallel block with two LayerNorms.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"
#include "model/layers/attention.h"
#include "model/layers/rotary.h"

namespace shardplan {
namespace {

struct GptNeoxLayer {
  NormModule norm1, norm2;
  LinearModule qkv, dense, up, down;
  AttentionShape shape;
  AttentionKind kind{};
  Activation activation{};
  RotaryTables tables;
  double dropout = 0;
  bool parallel = true;  ///< attention and MLP read the same input
};

GptNeoxLayer register_gpt_neox_layers(ModelBuilder& m, std::int64_t layers, std::int64_t hidden,
                                      std::int64_t ffn, bool bias) {
  GptNeoxLayer l;
  m.begin_repeat("gpt_neox.layers", layers);
  l.norm1 = m.layer_norm("input_layernorm", hidden);
  l.norm2 = m.layer_norm("post_attention_layernorm", hidden);
  l.qkv = m.linear("attention.query_key_value", hidden, 3 * hidden, bias);
  l.dense = m.linear("attention.dense", hidden, hidden, bias);
  l.up = m.linear("mlp.dense_h_to_4h", hidden, ffn, true);
  l.down = m.linear("mlp.dense_4h_to_h", ffn, hidden, true);
  m.end_repeat();
  return l;
}

ValueId feed_forward(Graph& g, const GptNeoxLayer& l, ValueId x) {
  const ValueId n2 = layer_norm(g, l.norm2, x);
  const ValueId inner = activate(g, l.activation, apply(g, l.up, n2));
  const ValueId out = dropout(g, apply(g, l.down, inner), l.dropout);
  g.hold(n2, out);
  return out;
}

ValueId gpt_neox_layer(Graph& g, const GptNeoxLayer& l, ValueId x) {
  const AttentionShape& s = l.shape;
  const std::int64_t hidden = per(g, x);
  const ValueId n1 = layer_norm(g, l.norm1, x);
  const ValueId fused = apply(g, l.qkv, n1);
  Rotation turn = rotation(g, l.tables);
  turn.always_cat = true;
  ValueId q = part(g, fused, hidden), k = part(g, fused, hidden);
  rotate_both(g, turn, q, s.heads, k, s.heads, s.head_dim);
  const ValueId mixed = attention(g, l.kind, s, q, k, part(g, fused, hidden));
  const ValueId attended = dropout(g, apply(g, l.dense, mixed), l.dropout);
  g.hold(n1, attended);
  if (l.parallel) {
    const ValueId both = g.map(OpKind::add, feed_forward(g, l, x), attended);
    return g.map(OpKind::add, both, x);
  }
  const ValueId middle = g.map(OpKind::add, attended, x);
  return g.map(OpKind::add, feed_forward(g, l, middle), middle);
}

}  // namespace

Model build_gpt_neox(const ModelConfig& config, const BuildOptions& options) {
  const std::int64_t hidden = config.count({"hidden_size"}, 6144);
  const std::int64_t layers = config.count({"num_hidden_layers"}, 44);
  const std::int64_t heads = config.count({"num_attention_heads"}, 64);
  const std::int64_t ffn = config.count({"intermediate_size"}, 24576);
  const std::int64_t vocab = config.count({"vocab_size"}, 50432);
  const bool bias = config.flag("attention_bias", true);
  const double residual_dropout = config.number("hidden_dropout", 0.0);
  config.require_divisible("hidden_size", hidden, "num_attention_heads", heads);
  const std::int64_t head_dim = hidden / heads;
  const std::int64_t rotary_dim =
      partial_rotary_dim(config, head_dim, config.number("rotary_pct", 0.25));

  ModelBuilder m(options);
  m.facts() = {.hidden = hidden,
               .layers = layers,
               .vocabulary = vocab,
               .max_positions = config.count_or_zero("max_position_embeddings", 2048),
               .attention_heads = heads,
               .key_value_heads = heads};
  const auto embed = m.embedding("gpt_neox.embed_in", vocab, hidden);
  GptNeoxLayer l = register_gpt_neox_layers(m, layers, hidden, ffn, bias);
  const auto norm = m.layer_norm("gpt_neox.final_layer_norm", hidden);
  const auto head = config.flag("tie_word_embeddings", false) ? m.tied_linear("lm_head", embed)
                                                              : m.linear("lm_head", hidden, vocab);

  Graph& e = m.begin_segment("embedding");
  const ValueId embedded = apply(e, embed, Scale::tokens);
  e.name_in_model(embedded);
  e.set_output(dropout(e, embedded, residual_dropout));
  l.tables = share_rotary(m, rotary_dim);
  l.shape = {.heads = heads,
             .kv_heads = heads,
             .head_dim = head_dim,
             .dropout = config.number("attention_dropout", 0.0),
             .heads_first = true,
             .mask = share_causal_mask(m, options.attention)};
  l.kind = options.attention;
  l.activation = read_activation(config, "hidden_act", "gelu");
  l.dropout = residual_dropout;
  l.parallel = config.flag("use_parallel_residual", true);

  Graph& g = m.begin_segment("layers", layers, true);
  g.set_output(gpt_neox_layer(g, l, g.chained_input({hidden, Scale::tokens})));

  add_causal_head(m, norm, head);
  return m.build();
}

}  // namespace shardplan
