// BLOOM (models/bloom): ALiBi instead of positions, a LayerNorm on the embedding, an activation
// that keeps its input only, and eager attention, always.
#include "model/architectures/architectures.h"
#include "model/layers/attention.h"
#include "model/layers/loss.h"
#include "model/layers/mlp.h"

namespace shardplan {

namespace {

struct BloomLayer {
  NormModule norm1, norm2;
  LinearModule qkv, dense, up, down;
  AttentionShape shape;
  bool residual_of_norm = false;
  double hidden_dropout = 0;
};

BloomLayer register_bloom_layers(ModelBuilder& m, std::int64_t layers, std::int64_t hidden) {
  BloomLayer l;
  m.begin_repeat("transformer.h", layers);
  l.norm1 = m.layer_norm("input_layernorm", hidden);
  l.qkv = m.linear("self_attention.query_key_value", hidden, 3 * hidden, true);
  l.dense = m.linear("self_attention.dense", hidden, hidden, true);
  l.norm2 = m.layer_norm("post_attention_layernorm", hidden);
  l.up = m.linear("mlp.dense_h_to_4h", hidden, 4 * hidden, true);
  l.down = m.linear("mlp.dense_4h_to_h", 4 * hidden, hidden, true);
  m.end_repeat();
  return l;
}

ValueId bloom_layer(Graph& g, const BloomLayer& l, ValueId x) {
  const std::int64_t hidden = per(g, x);
  const ValueId n1 = layer_norm(g, l.norm1, x);
  const ValueId fused = apply(g, l.qkv, n1);
  const ValueId mixed = attention(g, AttentionKind::eager, l.shape, slice(g, fused, hidden),
                                  slice(g, fused, hidden), slice(g, fused, hidden));
  const ValueId attended = dropout(g, apply(g, l.dense, mixed), l.hidden_dropout);
  const ValueId middle = g.map(OpKind::add, l.residual_of_norm ? n1 : x, attended);
  const ValueId n2 = layer_norm(g, l.norm2, middle);
  // BloomGelu is an autograd.Function: what it computes on the way is not kept.
  Op gelu{OpKind::gelu, {apply(g, l.up, n2), kNone, kNone}};
  gelu.own_function = true;
  const ValueId inner = g.op(gelu, {4 * hidden, Scale::tokens});
  const ValueId delta = dropout(g, apply(g, l.down, inner), l.hidden_dropout);
  g.hold(n1, attended);
  g.hold(n2, delta);
  g.name(attended);
  return g.map(OpKind::add, l.residual_of_norm ? n2 : middle, delta);
}

}  // namespace

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
               .supports_sdpa = false,
               .supports_flash_attn = false};
  const auto tokens = m.embedding("transformer.word_embeddings", vocab, hidden);
  const auto embedding_norm = m.layer_norm("transformer.word_embeddings_layernorm", hidden);
  BloomLayer l = register_bloom_layers(m, layers, hidden);
  const auto norm = m.layer_norm("transformer.ln_f", hidden);
  const auto head = config.flag("tie_word_embeddings", true) ? m.tied_linear("lm_head", tokens)
                                                             : m.linear("lm_head", hidden, vocab);

  Graph& e = m.begin_segment("embedding");
  const ValueId embedded = apply(e, tokens, Scale::tokens);
  e.name_in_model(embedded);
  e.set_output(layer_norm(e, embedding_norm, embedded));
  m.share("alibi", {heads, Scale::tokens});  // baddbmm adds it to the product within one kernel
  const std::int32_t mask = share_causal_mask(m, AttentionKind::eager);

  l.residual_of_norm = residual_of_norm;
  l.hidden_dropout = hidden_dropout;
  l.shape = {.heads = heads,
             .kv_heads = heads,
             .head_dim = hidden / heads,
             .dropout = config.number("attention_dropout", 0.0),
             .names_scores = true,
             .returns_weights = true,
             .mask = mask};
  Graph& g = m.begin_segment("layers", layers, true);
  const ValueId x = g.chained_input({hidden, Scale::tokens});
  g.set_output(bloom_layer(g, l, x));

  add_causal_head(m, norm, head);
  return m.build();
}

}  // namespace shardplan
