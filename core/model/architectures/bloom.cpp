// BLOOM (models/bloom): ALiBi instead of positions, a LayerNorm on the embedding, an activation
// that keeps its input only, and eager attention, always.
#include "model/architectures/architectures.h"
#include "model/layers/attention.h"
#include "model/layers/loss.h"
#include "model/layers/mlp.h"

namespace shardplan {

Model build_bloom(const ModelConfig& config, const BuildOptions& options) {
  const std::int64_t hidden = config.count({"n_embed", "hidden_size"}, 64);
  const std::int64_t layers = config.count({"n_layer", "num_hidden_layers"}, 2);
  const std::int64_t heads = config.count({"n_head", "num_attention_heads"}, 8);
  const std::int64_t vocab = config.count({"vocab_size"}, 250880);
  const bool residual_of_norm = config.flag("apply_residual_connection_post_layernorm", false);
  const double hidden_dropout = config.number("hidden_dropout", 0.0);
  config.require_divisible("hidden_size", hidden, "n_head", heads);

  ModelBuilder m(options);
  m.facts() = {.hidden = hidden,
               .layers = layers,
               .vocabulary = vocab,
               .attention_heads = heads,
               .key_value_heads = heads,
               .supports_sdpa = false};
  const auto tokens = m.embedding("transformer.word_embeddings", vocab, hidden);
  const auto embedding_norm = m.layer_norm("transformer.word_embeddings_layernorm", hidden);
  m.begin_repeat("transformer.h", layers);
  const auto norm1 = m.layer_norm("input_layernorm", hidden);
  const auto qkv = m.linear("self_attention.query_key_value", hidden, 3 * hidden, true);
  const auto dense = m.linear("self_attention.dense", hidden, hidden, true);
  const auto norm2 = m.layer_norm("post_attention_layernorm", hidden);
  const auto up = m.linear("mlp.dense_h_to_4h", hidden, 4 * hidden, true);
  const auto down = m.linear("mlp.dense_4h_to_h", 4 * hidden, hidden, true);
  m.end_repeat();
  const auto norm = m.layer_norm("transformer.ln_f", hidden);
  const auto head = config.flag("tie_word_embeddings", true) ? m.tied_linear("lm_head", tokens)
                                                             : m.linear("lm_head", hidden, vocab);

  Graph& e = m.begin_segment("embedding");
  const ValueId embedded = apply(e, tokens, Scale::tokens);
  e.name_in_model(embedded);
  e.set_output(layer_norm(e, embedding_norm, embedded));
  m.share("alibi", {heads, Scale::tokens});  // baddbmm adds it to the product within one kernel
  const std::int32_t mask = share_causal_mask(m, AttentionKind::eager);

  Graph& g = m.begin_segment("layers", layers, true);
  const ValueId x = g.chained_input({hidden, Scale::tokens});
  const ValueId n1 = layer_norm(g, norm1, x);
  const ValueId fused = apply(g, qkv, n1);
  const AttentionShape shape{.heads = heads,
                             .kv_heads = heads,
                             .head_dim = hidden / heads,
                             .dropout = config.number("attention_dropout", 0.0),
                             .mask = mask};
  const ValueId mixed = attention(g, AttentionKind::eager, shape, slice(g, fused, hidden),
                                  slice(g, fused, hidden), slice(g, fused, hidden));
  const ValueId attended = dropout(g, apply(g, dense, mixed), hidden_dropout);
  const ValueId middle = g.map(OpKind::add, residual_of_norm ? n1 : x, attended);
  const ValueId n2 = layer_norm(g, norm2, middle);
  // BloomGelu is an autograd.Function: what it computes on the way is not kept.
  const ValueId inner = g.map(OpKind::gelu, apply(g, up, n2));
  const ValueId delta = dropout(g, apply(g, down, inner), hidden_dropout);
  g.name_until(n1, attended);
  g.name_until(n2, delta);
  g.name(attended);
  g.set_output(g.map(OpKind::add, residual_of_norm ? n2 : middle, delta));

  Graph& h = m.begin_segment("head");
  const ValueId last = h.chained_input({hidden, Scale::tokens});
  h.set_output(language_model_loss(h, head, layer_norm(h, norm, last)));
  return m.build();
}

}  // namespace shardplan
