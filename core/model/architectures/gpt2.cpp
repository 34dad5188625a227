// GPT-2 (models/gpt2).
#include "model/architectures/architectures.h"
#include "model/layers/attention.h"
#include "model/layers/loss.h"
#include "model/layers/mlp.h"

namespace shardplan {

namespace {

struct Gpt2Layer {
  NormModule norm1, norm2;
  LinearModule qkv, projection, up, down;
  AttentionShape shape;
  AttentionKind kind{};
  Activation activation{};
  double residual_dropout = 0;
};

Gpt2Layer register_gpt2_layers(ModelBuilder& m, std::int64_t layers, std::int64_t hidden,
                               std::int64_t ffn) {
  Gpt2Layer l;
  m.begin_repeat("transformer.h", layers);
  l.norm1 = m.layer_norm("ln_1", hidden);
  l.qkv = m.conv1d("attn.c_attn", hidden, 3 * hidden);
  l.projection = m.conv1d("attn.c_proj", hidden, hidden);
  l.norm2 = m.layer_norm("ln_2", hidden);
  l.up = m.conv1d("mlp.c_fc", hidden, ffn);
  l.down = m.conv1d("mlp.c_proj", ffn, hidden);
  m.end_repeat();
  return l;
}

ValueId gpt2_layer(Graph& g, const Gpt2Layer& l, ValueId x) {
  const std::int64_t hidden = per(g, x);
  const ValueId n1 = layer_norm(g, l.norm1, x);
  const ValueId fused = apply(g, l.qkv, n1);
  const ValueId mixed = attention(g, l.kind, l.shape, part(g, fused, hidden),
                                  part(g, fused, hidden), part(g, fused, hidden));
  const ValueId attended = dropout(g, apply(g, l.projection, mixed), l.residual_dropout);
  const ValueId middle = g.map(OpKind::add, attended, x);
  const ValueId n2 = layer_norm(g, l.norm2, middle);
  const ValueId inner = activate(g, l.activation, apply(g, l.up, n2));
  const ValueId delta = dropout(g, apply(g, l.down, inner), l.residual_dropout);
  const ValueId out = g.map(OpKind::add, middle, delta);
  g.hold(fused, attended);
  g.hold(n1, middle);  // the residual sums are bound to their names
  g.hold(n2, out);
  g.name(attended);
  return out;
}

}  // namespace

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
               .key_value_heads = heads,
               // Its class has no loss of its own, and the warning that says so breaks the graph
               // (modeling_utils.py, loss_function).
               .breaks_before_loss = true};
  const auto tokens = m.embedding("transformer.wte", vocab, hidden);
  const auto places = m.embedding("transformer.wpe", positions, hidden);
  Gpt2Layer l = register_gpt2_layers(m, layers, hidden, ffn);
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

  l.kind = options.attention;
  l.activation = activation;
  l.residual_dropout = residual_dropout;
  l.shape = {.heads = heads,
             .kv_heads = heads,
             .head_dim = hidden / heads,
             .dropout = config.number("attn_pdrop", 0.1),
             .softmax_f32 = false,
             .mask = mask};
  Graph& g = m.begin_segment("layers", layers, true);
  const ValueId x = g.chained_input({hidden, Scale::tokens});
  g.set_output(gpt2_layer(g, l, x));

  add_causal_head(m, norm, head);
  return m.build();
}

}  // namespace shardplan
