// GPT-Neo (models/gpt_neo): GPT-2 with separate projections and eager attention in fp32, always;
// its local layers mask more, and cost the same.
#include "model/architectures/architectures.h"
#include "model/layers/attention.h"
#include "model/layers/loss.h"
#include "model/layers/mlp.h"

namespace shardplan {

Model build_gpt_neo(const ModelConfig& config, const BuildOptions& options) {
  const std::int64_t hidden = config.count({"hidden_size"}, 2048);
  const std::int64_t layers = config.count({"num_layers", "num_hidden_layers"}, 24);
  const std::int64_t heads = config.count({"num_heads", "num_attention_heads"}, 16);
  const std::int64_t vocab = config.count({"vocab_size"}, 50257);
  const std::int64_t positions = config.count({"max_position_embeddings"}, 2048);
  const std::int64_t ffn = config.count({"intermediate_size"}, 4 * hidden);
  const double residual_dropout = config.number("resid_dropout", 0.0);
  const Activation activation = read_activation(config, "activation_function", "gelu_new");
  config.require_divisible("hidden_size", hidden, "num_heads", heads);

  ModelBuilder m(options);
  m.facts() = {.hidden = hidden,
               .layers = layers,
               .vocabulary = vocab,
               .max_positions = positions,
               .attention_heads = heads,
               .key_value_heads = heads,
               .supports_sdpa = false};
  const auto tokens = m.embedding("transformer.wte", vocab, hidden);
  const auto places = m.embedding("transformer.wpe", positions, hidden);
  m.begin_repeat("transformer.h", layers);
  const auto norm1 = m.layer_norm("ln_1", hidden);
  const auto k_proj = m.linear("attn.attention.k_proj", hidden, hidden);
  const auto v_proj = m.linear("attn.attention.v_proj", hidden, hidden);
  const auto q_proj = m.linear("attn.attention.q_proj", hidden, hidden);
  const auto out_proj = m.linear("attn.attention.out_proj", hidden, hidden, true);
  const auto norm2 = m.layer_norm("ln_2", hidden);
  const auto up = m.linear("mlp.c_fc", hidden, ffn, true);
  const auto down = m.linear("mlp.c_proj", ffn, hidden, true);
  m.end_repeat();
  const auto norm = m.layer_norm("transformer.ln_f", hidden);
  const auto head = config.flag("tie_word_embeddings", true) ? m.tied_linear("lm_head", tokens)
                                                             : m.linear("lm_head", hidden, vocab);

  Graph& e = m.begin_segment("embedding");
  const ValueId embedded = apply(e, tokens, Scale::tokens);
  const ValueId position = apply(e, places, Scale::sequence);
  e.name_in_model(embedded);
  e.name_in_model(position);
  const ValueId sum = e.map(OpKind::add, embedded, position);
  e.set_output(dropout(e, sum, config.number("embed_dropout", 0.0)));
  const std::int32_t mask = share_causal_mask(m, AttentionKind::eager);

  Graph& g = m.begin_segment("layers", layers, true);
  const ValueId x = g.chained_input({hidden, Scale::tokens});
  const ValueId n1 = layer_norm(g, norm1, x);
  const ValueId q = apply(g, q_proj, n1);
  const ValueId k = apply(g, k_proj, n1);
  const ValueId v = apply(g, v_proj, n1);
  const AttentionShape shape{.heads = heads,
                             .kv_heads = heads,
                             .head_dim = hidden / heads,
                             .dropout = config.number("attention_dropout", 0.0),
                             .softmax_f32 = false,
                             .scores_f32 = true,
                             .mask = mask};
  const ValueId mixed = attention(g, AttentionKind::eager, shape, q, k, v);
  const ValueId attended = dropout(g, apply(g, out_proj, mixed), residual_dropout);
  const ValueId middle = g.map(OpKind::add, attended, x);
  const ValueId n2 = layer_norm(g, norm2, middle);
  const ValueId inner = activate(g, activation, apply(g, up, n2));
  const ValueId delta = dropout(g, apply(g, down, inner), residual_dropout);
  g.name_until(n1, attended);
  g.name_until(n2, delta);
  g.name(attended);
  g.set_output(g.map(OpKind::add, middle, delta));

  Graph& h = m.begin_segment("head");
  const ValueId last = h.chained_input({hidden, Scale::tokens});
  h.set_output(language_model_loss(h, head, layer_norm(h, norm, last)));
  return m.build();
}

}  // namespace shardplan
