// GPT-J 6B (models/gptj): a parallel block with one LayerNorm, rotation of every second element by
// tables that each layer looks up anew, and eager attention in fp32, always.
#include "model/architectures/architectures.h"
#include "model/layers/attention.h"
#include "model/layers/loss.h"
#include "model/layers/mlp.h"
#include "model/layers/rotary.h"

namespace shardplan {
namespace {

/// Each of q and k repeats sine and cosine for itself: [s, rotary_dim], in the parameters' type.
Rotation own_tables(Graph& g, const RotaryTables& half_tables, std::int64_t rotary_dim) {
  const Rotation halves = rotation(g, half_tables);
  const Extent full{rotary_dim, Scale::sequence};
  return {.cos = g.op({OpKind::copy, {halves.cos, kNone, kNone}}, full),
          .sin = g.op({OpKind::copy, {halves.sin, kNone, kNone}}, full),
          .dim = rotary_dim,
          .always_cat = true};
}

struct GptjLayer {
  NormModule norm1;
  LinearModule k_proj, v_proj, q_proj, out_proj, up, down;
  AttentionShape shape;
  RotaryTables halves;
  std::int64_t rotary_dim = 0;
  Activation activation{};
  double residual_dropout = 0;
};

GptjLayer register_gptj_layers(ModelBuilder& m, std::int64_t layers, std::int64_t hidden,
                               std::int64_t ffn) {
  GptjLayer l;
  m.begin_repeat("transformer.h", layers);
  l.norm1 = m.layer_norm("ln_1", hidden);
  l.k_proj = m.linear("attn.k_proj", hidden, hidden);
  l.v_proj = m.linear("attn.v_proj", hidden, hidden);
  l.q_proj = m.linear("attn.q_proj", hidden, hidden);
  l.out_proj = m.linear("attn.out_proj", hidden, hidden);
  l.up = m.linear("mlp.fc_in", hidden, ffn, true);
  l.down = m.linear("mlp.fc_out", ffn, hidden, true);
  m.end_repeat();
  return l;
}

ValueId gptj_layer(Graph& g, const GptjLayer& l, ValueId x) {
  const ValueId n1 = layer_norm(g, l.norm1, x);
  const ValueId q_straight = apply(g, l.q_proj, n1);
  const ValueId k_straight = apply(g, l.k_proj, n1);
  const ValueId v = apply(g, l.v_proj, n1);
  const ValueId k =
      rotate(g, own_tables(g, l.halves, l.rotary_dim), k_straight, l.shape.heads, l.shape.head_dim);
  const ValueId q =
      rotate(g, own_tables(g, l.halves, l.rotary_dim), q_straight, l.shape.heads, l.shape.head_dim);
  const ValueId mixed = attention(g, AttentionKind::eager, l.shape, q, k, v);
  const ValueId attended = dropout(g, apply(g, l.out_proj, mixed), l.residual_dropout);
  const ValueId inner = activate(g, l.activation, apply(g, l.up, n1));
  const ValueId delta = dropout(g, apply(g, l.down, inner), l.residual_dropout);
  g.hold(n1, delta);
  return g.map(OpKind::add, g.map(OpKind::add, attended, delta), x);
}

}  // namespace

Model build_gptj(const ModelConfig& config, const BuildOptions& options) {
  const std::int64_t hidden = config.count({"n_embd", "hidden_size"}, 4096);
  const std::int64_t layers = config.count({"n_layer", "num_hidden_layers"}, 28);
  const std::int64_t heads = config.count({"n_head", "num_attention_heads"}, 16);
  const std::int64_t vocab = config.count({"vocab_size"}, 50400);
  const std::int64_t ffn = config.count({"n_inner"}, 4 * hidden);
  const std::int64_t rotary_dim = config.count({"rotary_dim"}, 64);
  const std::int64_t positions = config.count({"n_positions", "max_position_embeddings"}, 2048);
  const double residual_dropout = config.number("resid_pdrop", 0.0);
  const Activation activation = read_activation(config, "activation_function", "gelu_new");
  config.require_divisible("n_embd", hidden, "n_head", heads);
  const std::int64_t head_dim = hidden / heads;
  if (rotary_dim > head_dim || rotary_dim % 2 != 0)
    config.fail("rotary_dim", "does not fit the heads", "an even number, at most n_embd / n_head");

  ModelBuilder m(options);
  m.facts() = {.hidden = hidden,
               .layers = layers,
               .vocabulary = vocab,
               .max_positions = positions,
               .attention_heads = heads,
               .key_value_heads = heads,
               // Each layer's sinusoids of all positions, fp32 (GPTJAttention.embed_positions).
               .buffer_bytes = layers * positions * rotary_dim * 4,
               .supports_sdpa = false};
  const auto embed = m.embedding("transformer.wte", vocab, hidden);
  GptjLayer l = register_gptj_layers(m, layers, hidden, ffn);
  const auto norm = m.layer_norm("transformer.ln_f", hidden);
  const auto head = config.flag("tie_word_embeddings", false)
                        ? m.tied_linear("lm_head", embed, true)
                        : m.linear("lm_head", hidden, vocab, true);

  Graph& e = m.begin_segment("embedding");
  const ValueId embedded = apply(e, embed, Scale::tokens);
  e.name_in_model(embedded);
  e.set_output(dropout(e, embedded, config.number("embd_pdrop", 0.0)));
  // What a layer gathers from its sinusoids.
  const RotaryTables halves = share_rotary(m, rotary_dim / 2);
  const std::int32_t mask = share_causal_mask(m, AttentionKind::eager);

  l.halves = halves;
  l.rotary_dim = rotary_dim;
  l.activation = activation;
  l.residual_dropout = residual_dropout;
  l.shape = {.heads = heads,
             .kv_heads = heads,
             .head_dim = head_dim,
             .dropout = config.number("attn_pdrop", 0.0),
             .softmax_f32 = false,
             .scores_f32 = true,
             .mask = mask};
  Graph& g = m.begin_segment("layers", layers, true);
  const ValueId x = g.chained_input({hidden, Scale::tokens});
  g.set_output(gptj_layer(g, l, x));

  add_causal_head(m, norm, head);
  return m.build();
}

}  // namespace shardplan
