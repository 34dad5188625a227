// OPT (models/opt): learned positions with an offset of two; the 350M model norms after its
// sublayers and projects between a narrow embedding and its hidden size.
#include "model/architectures/architectures.h"
#include "model/layers/attention.h"
#include "model/layers/loss.h"
#include "model/layers/mlp.h"

namespace shardplan {
namespace {

constexpr std::int64_t kPositionOffset = 2;

struct OptLayer {
  LinearModule k_proj, v_proj, q_proj, out_proj, up, down;
  NormModule norm1, norm2;
  AttentionShape shape;
  AttentionKind kind{};
  Activation activation{};
  double dropout = 0;
  bool norm_first = true;
};

NormModule opt_norm(ModelBuilder& m, std::string_view name, std::int64_t hidden, bool affine) {
  return affine ? m.layer_norm(name, hidden) : NormModule{.width = hidden};
}

OptLayer register_opt_layers(ModelBuilder& m, std::int64_t layers, std::int64_t hidden,
                             std::int64_t ffn, bool bias, bool affine) {
  OptLayer l;
  m.begin_repeat("model.decoder.layers", layers);
  l.k_proj = m.linear("self_attn.k_proj", hidden, hidden, bias);
  l.v_proj = m.linear("self_attn.v_proj", hidden, hidden, bias);
  l.q_proj = m.linear("self_attn.q_proj", hidden, hidden, bias);
  l.out_proj = m.linear("self_attn.out_proj", hidden, hidden, bias);
  l.norm1 = opt_norm(m, "self_attn_layer_norm", hidden, affine);
  l.up = m.linear("fc1", hidden, ffn, bias);
  l.down = m.linear("fc2", ffn, hidden, bias);
  l.norm2 = opt_norm(m, "final_layer_norm", hidden, affine);
  m.end_repeat();
  return l;
}

void read_opt_layer(const ModelConfig& config, OptLayer& l) {
  l.activation = read_activation(config, "activation_function", "relu");
  l.dropout = config.number("dropout", 0.1);
  l.norm_first = config.flag("do_layer_norm_before", true);
}

ValueId opt_layer(Graph& g, const OptLayer& l, ValueId x) {
  const ValueId in = l.norm_first ? layer_norm(g, l.norm1, x) : x;
  const ValueId q = g.map(OpKind::scalar, apply(g, l.q_proj, in));
  const ValueId k = apply(g, l.k_proj, in);
  const ValueId v = apply(g, l.v_proj, in);
  const ValueId mixed = apply(g, l.out_proj, attention(g, l.kind, l.shape, q, k, v));
  const ValueId sum = g.map(OpKind::add, x, dropout(g, mixed, l.dropout));
  const ValueId middle = l.norm_first ? sum : layer_norm(g, l.norm1, sum);
  const ValueId read = l.norm_first ? layer_norm(g, l.norm2, middle) : middle;
  const ValueId inner = activate(g, l.activation, apply(g, l.up, read));
  const ValueId delta = dropout(g, apply(g, l.down, inner), l.dropout);
  const ValueId out = g.map(OpKind::add, middle, delta);
  if (l.norm_first) g.hold(in, mixed);
  g.hold(q, mixed);
  return l.norm_first ? out : layer_norm(g, l.norm2, out);
}

/// `projection`: of words to the width of the layers, or null.
void embed(Graph& g, const EmbeddingModule& words, const EmbeddingModule& places,
           const LinearModule* projection) {
  ValueId embedded = apply(g, words, Scale::tokens);
  const ValueId position = apply(g, places, Scale::tokens);  // indices for every sequence
  if (projection != nullptr) embedded = apply(g, *projection, embedded);
  g.name_in_model(embedded);
  g.name_in_model(position);
  g.set_output(g.map(OpKind::add, embedded, position));
}

}  // namespace

Model build_opt(const ModelConfig& config, const BuildOptions& options) {
  const std::int64_t hidden = config.count({"hidden_size"}, 768);
  const std::int64_t layers = config.count({"num_hidden_layers"}, 12);
  const std::int64_t heads = config.count({"num_attention_heads"}, 12);
  const std::int64_t ffn = config.count({"ffn_dim"}, 3072);
  const std::int64_t vocab = config.count({"vocab_size"}, 50272);
  const std::int64_t positions = config.count({"max_position_embeddings"}, 2048);
  const std::int64_t width = config.count({"word_embed_proj_dim"}, hidden);
  const bool norm_first = config.flag("do_layer_norm_before", true);
  const bool final_norm = norm_first && !config.flag("_remove_final_layer_norm", false);
  const bool bias = config.flag("enable_bias", true);
  const bool affine = config.flag("layer_norm_elementwise_affine", true);
  config.require_divisible("hidden_size", hidden, "num_attention_heads", heads);

  ModelBuilder m(options);
  m.facts() = {.hidden = hidden,
               .layers = layers,
               .vocabulary = vocab,
               .max_positions = positions,
               .attention_heads = heads,
               .key_value_heads = heads,
               // LayerDrop draws a number for each layer and compares it, whatever the chance is
               // (transformers 5.17, modeling_opt.py; 5.24 only where the chance is above 0).
               .breaks_between_layers = true};
  const auto tokens = m.embedding("model.decoder.embed_tokens", vocab, width);
  const auto places =
      m.embedding("model.decoder.embed_positions", positions + kPositionOffset, hidden);
  LinearModule project_out, project_in;
  if (width != hidden) {
    m.set_like_blocks(true);
    project_out = m.linear("model.decoder.project_out", hidden, width);
    project_in = m.linear("model.decoder.project_in", width, hidden);
    m.set_like_blocks(false);
  }
  NormModule norm;
  if (final_norm) norm = opt_norm(m, "model.decoder.final_layer_norm", hidden, affine);
  OptLayer l = register_opt_layers(m, layers, hidden, ffn, bias, affine);
  const auto head = config.flag("tie_word_embeddings", true) ? m.tied_linear("lm_head", tokens)
                                                             : m.linear("lm_head", width, vocab);

  embed(m.begin_segment("embedding"), tokens, places, width != hidden ? &project_in : nullptr);
  l.shape = {.heads = heads,
             .kv_heads = heads,
             .head_dim = hidden / heads,
             .dropout = config.number("attention_dropout", 0.0),
             .mask = share_causal_mask(m, options.attention)};
  l.kind = options.attention;
  read_opt_layer(config, l);

  Graph& g = m.begin_segment("layers", layers, true);
  g.set_output(opt_layer(g, l, g.chained_input({hidden, Scale::tokens})));

  Graph& h = m.begin_segment("head");
  const ValueId last = h.chained_input({hidden, Scale::tokens});
  ValueId states = final_norm ? layer_norm(h, norm, last) : last;
  if (width != hidden) states = apply(h, project_out, states);
  h.set_output(language_model_loss(h, head, states));
  return m.build();
}

}  // namespace shardplan
