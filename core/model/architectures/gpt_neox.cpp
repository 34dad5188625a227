// GPT-NeoX 20B and Pythia (models/gpt_neox): one linear for q, k and v, partial rotary embeddings,
// and usually a parallel block with two LayerNorms.
#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"
#include "model/layers/attention.h"

namespace shardplan {

Model build_gpt_neox(const ModelConfig& config, const BuildOptions& options) {
  const std::int64_t hidden = config.count({"hidden_size"}, 6144);
  const std::int64_t layers = config.count({"num_hidden_layers"}, 44);
  const std::int64_t heads = config.count({"num_attention_heads"}, 64);
  const std::int64_t ffn = config.count({"intermediate_size"}, 24576);
  const std::int64_t vocab = config.count({"vocab_size"}, 50432);
  const bool bias = config.flag("attention_bias", true);
  const double residual_dropout = config.number("hidden_dropout", 0.0);
  const Activation activation = read_activation(config, "hidden_act", "gelu");
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
  m.begin_repeat("gpt_neox.layers", layers);
  const auto norm1 = m.layer_norm("input_layernorm", hidden);
  const auto norm2 = m.layer_norm("post_attention_layernorm", hidden);
  const auto qkv = m.linear("attention.query_key_value", hidden, 3 * hidden, bias);
  const auto dense = m.linear("attention.dense", hidden, hidden, bias);
  const auto up = m.linear("mlp.dense_h_to_4h", hidden, ffn, true);
  const auto down = m.linear("mlp.dense_4h_to_h", ffn, hidden, true);
  m.end_repeat();
  const auto norm = m.layer_norm("gpt_neox.final_layer_norm", hidden);
  const auto head = config.flag("tie_word_embeddings", false) ? m.tied_linear("lm_head", embed)
                                                              : m.linear("lm_head", hidden, vocab);

  Graph& e = m.begin_segment("embedding");
  const ValueId embedded = apply(e, embed, Scale::tokens);
  e.name_in_model(embedded);
  e.set_output(dropout(e, embedded, residual_dropout));
  const RotaryTables tables = share_rotary(m, rotary_dim);
  const std::int32_t mask = share_causal_mask(m, options.attention);

  Graph& g = m.begin_segment("layers", layers, true);
  const ValueId x = g.chained_input({hidden, Scale::tokens});
  const ValueId n1 = layer_norm(g, norm1, x);
  const ValueId fused = apply(g, qkv, n1);
  Rotation turn = rotation(g, tables);
  turn.always_cat = true;
  const ValueId q = rotate(g, turn, slice(g, fused, hidden), heads, head_dim);
  const ValueId k = rotate(g, turn, slice(g, fused, hidden), heads, head_dim);
  const AttentionShape shape{.heads = heads,
                             .kv_heads = heads,
                             .head_dim = head_dim,
                             .dropout = config.number("attention_dropout", 0.0),
                             .heads_first = true,
                             .mask = mask};
  const ValueId mixed = attention(g, options.attention, shape, q, k, slice(g, fused, hidden));
  const ValueId attended = dropout(g, apply(g, dense, mixed), residual_dropout);
  g.name_until(n1, attended);
  const auto feed_forward = [&](ValueId in) {
    const ValueId n2 = layer_norm(g, norm2, in);
    const ValueId inner = activate(g, activation, apply(g, up, n2));
    const ValueId out = dropout(g, apply(g, down, inner), residual_dropout);
    g.name_until(n2, out);
    return out;
  };
  if (config.flag("use_parallel_residual", true)) {
    const ValueId both = g.map(OpKind::add, feed_forward(x), attended);
    g.set_output(g.map(OpKind::add, both, x));
  } else {
    const ValueId middle = g.map(OpKind::add, attended, x);
    g.set_output(g.map(OpKind::add, feed_forward(middle), middle));
  }

  Graph& h = m.begin_segment("head");
  const ValueId last = h.chained_input({hidden, Scale::tokens});
  h.set_output(language_model_loss(h, head, layer_norm(h, norm, last)));
  return m.build();
}

}  // namespace shardplan
