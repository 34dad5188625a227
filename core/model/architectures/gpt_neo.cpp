// GPT-Neo (models/gpt_neo): GPT-2 with separate projections and eager attention in fp32, always;
// its local layers mask more, and cost the same.
#include "model/architectures/architectures.h"
#include "model/layers/attention.h"
#include "model/layers/loss.h"
#include "model/layers/mlp.h"

namespace shardplan {

namespace {

struct GptNeoLayer {
  NormModule norm1, norm2;
  LinearModule k_proj, v_proj, q_proj, out_proj, up, down;
  AttentionShape shape;
  Activation activation{};
  double residual_dropout = 0;
};

GptNeoLayer register_gpt_neo_layers(ModelBuilder& m, std::int64_t layers, std::int64_t hidden,
                                    std::int64_t ffn) {
  GptNeoLayer l;
  m.begin_repeat("transformer.h", layers);
  l.norm1 = m.layer_norm("ln_1", hidden);
  l.k_proj = m.linear("attn.attention.k_proj", hidden, hidden);
  l.v_proj = m.linear("attn.attention.v_proj", hidden, hidden);
  l.q_proj = m.linear("attn.attention.q_proj", hidden, hidden);
  l.out_proj = m.linear("attn.attention.out_proj", hidden, hidden, true);
  l.norm2 = m.layer_norm("ln_2", hidden);
  l.up = m.linear("mlp.c_fc", hidden, ffn, true);
  l.down = m.linear("mlp.c_proj", ffn, hidden, true);
  m.end_repeat();
  return l;
}

ValueId gpt_neo_layer(Graph& g, const GptNeoLayer& l, ValueId x) {
  const ValueId n1 = layer_norm(g, l.norm1, x);
  const ValueId q = apply(g, l.q_proj, n1);
  const ValueId k = apply(g, l.k_proj, n1);
  const ValueId v = apply(g, l.v_proj, n1);
  const ValueId mixed = attention(g, AttentionKind::eager, l.shape, q, k, v);
  const ValueId attended = dropout(g, apply(g, l.out_proj, mixed), l.residual_dropout);
  const ValueId middle = g.map(OpKind::add, attended, x);
  const ValueId n2 = layer_norm(g, l.norm2, middle);
  const ValueId inner = activate(g, l.activation, apply(g, l.up, n2));
  const ValueId delta = dropout(g, apply(g, l.down, inner), l.residual_dropout);
  g.hold(n1, attended);
  g.hold(n2, delta);
  g.name(attended);
  return g.map(OpKind::add, middle, delta);
}

}  // namespace

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
               // Each layer's mask of all positions, booleans (GPTNeoSelfAttention.bias).
               .buffer_bytes = layers * positions * positions,
               .supports_sdpa = false};
  const auto tokens = m.embedding("transformer.wte", vocab, hidden);
  const auto places = m.embedding("transformer.wpe", positions, hidden);
  GptNeoLayer l = register_gpt_neo_layers(m, layers, hidden, ffn);
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

  l.activation = activation;
  l.residual_dropout = residual_dropout;
  l.shape = {.heads = heads,
             .kv_heads = heads,
             .head_dim = hidden / heads,
             .dropout = config.number("attention_dropout", 0.0),
             .softmax_f32 = false,
             .scores_f32 = true,
             .returns_weights = true,
             .mask = mask};
  Graph& g = m.begin_segment("layers", layers, true);
  const ValueId x = g.chained_input({hidden, Scale::tokens});
  g.set_output(gpt_neo_layer(g, l, x));

  add_causal_head(m, norm, head);
  return m.build();
}

}  // namespace shardplan
