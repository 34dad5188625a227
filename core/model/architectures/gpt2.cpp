// GPT-2 (models/gpt2).
#include "model/architectures/architectures.h"
#include "model/layers/attention.h"
#include "model/layers/loss.h"
#include "model/layers/mlp.h"

namespace shardplan {

Model build_gpt2(const ModelConfig& config, const BuildOptions& options) {
  const std::int64_t hidden = config.count({"n_embd", "hidden_size"}, 768);
  const std::int64_t layers = config.count({"n_layer", "num_hidden_layers"}, 12);
  const std::int64_t heads = config.count({"n_head", "num_attention_heads"}, 12);
  const std::int64_t vocab = config.count({"vocab_size"}, 50257);
  const std::int64_t positions = config.count({"n_positions", "max_position_embeddings"}, 1024);
  const std::int64_t ffn = config.count({"n_inner"}, 4 * hidden);
  const double residual_dropout = config.number("resid_pdrop", 0.1);
  const double embedding_dropout = config.number("embd_pdrop", 0.1);
  const Activation activation = read_activation(config, "activation_function", "gelu_new");
  config.require_divisible("n_embd", hidden, "n_head", heads);
  if (config.flag("add_cross_attention", false))
    config.fail("add_cross_attention", "cross attention in gpt2 is not supported", "false");

  ModelBuilder m(options);
  m.facts() = {.hidden = hidden,
               .layers = layers,
               .vocabulary = vocab,
               .max_positions = positions,
               .attention_heads = heads,
               .key_value_heads = heads};
  const auto tokens = m.embedding("transformer.wte", vocab, hidden);
  const auto places = m.embedding("transformer.wpe", positions, hidden);
  m.begin_repeat("transformer.h", layers);
  const auto norm1 = m.layer_norm("ln_1", hidden);
  const auto qkv = m.conv1d("attn.c_attn", hidden, 3 * hidden);
  const auto projection = m.conv1d("attn.c_proj", hidden, hidden);
  const auto norm2 = m.layer_norm("ln_2", hidden);
  const auto up = m.conv1d("mlp.c_fc", hidden, ffn);
  const auto down = m.conv1d("mlp.c_proj", ffn, hidden);
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
  e.set_output(dropout(e, sum, embedding_dropout));
  const std::int32_t mask = share_causal_mask(m, options.attention);

  Graph& g = m.begin_segment("layers", layers, true);
  const ValueId x = g.chained_input({hidden, Scale::tokens});
  const ValueId n1 = layer_norm(g, norm1, x);
  const ValueId fused = apply(g, qkv, n1);
  const AttentionShape shape{.heads = heads,
                             .kv_heads = heads,
                             .head_dim = hidden / heads,
                             .dropout = config.number("attn_pdrop", 0.1),
                             .softmax_f32 = false,
                             .mask = mask};
  const ValueId mixed = attention(g, options.attention, shape, slice(g, fused, hidden),
                                  slice(g, fused, hidden), slice(g, fused, hidden));
  const ValueId attended = dropout(g, apply(g, projection, mixed), residual_dropout);
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
