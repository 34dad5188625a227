// BART (models/bart) and mBART (models/mbart), ForConditionalGeneration.
#include "model/architectures/architectures.h"
#include "model/layers/heads.h"
#include "model/layers/sequence_layer.h"

namespace shardplan {
namespace {

struct Side {
  EmbeddingModule positions;
  SequenceLayer layer;
  std::int64_t layers = 0;
  NormModule embedding_norm;
  std::optional<NormModule> last_norm;  ///< mBART
  double dropout = 0;
};

Side declare_side(ModelBuilder& m, const ModelConfig& c, const std::string& side,
                  std::int64_t hidden, std::int64_t positions, bool norm_first) {
  const bool decoder = side == "decoder";
  const std::string layers_key = side + "_layers", prefix = "model." + side + ".";
  const SequenceShape shape = read_sequence_shape(
      c, side, hidden, {.heads = 16, .ffn = 4096, .norm_first = norm_first, .dropout = 0.1});
  Side s;
  s.dropout = shape.dropout;
  s.layers = c.count({layers_key}, 12);
  // Positions are looked up from index 2 on.
  s.positions = m.embedding(prefix + "embed_positions", positions + 2, hidden);
  m.begin_repeat(prefix + "layers", s.layers);
  s.layer = sequence_layer(m, shape, decoder);
  m.end_repeat();
  s.embedding_norm = m.layer_norm(prefix + "layernorm_embedding", hidden);
  if (norm_first) s.last_norm = m.layer_norm(prefix + "layer_norm", hidden);
  return s;
}

void embed(Graph& g, const Side& s, const EmbeddingModule& tokens, Scale scale) {
  const ValueId scaled = g.map(OpKind::scalar, apply(g, tokens, scale));
  const ValueId sum = g.map(OpKind::add, scaled, apply(g, s.positions, scale));
  const ValueId normal = layer_norm(g, s.embedding_norm, sum);
  const ValueId out = dropout(g, normal, s.dropout);
  g.hold(scaled, out);
  g.set_output(out);
}

Model build_bart_like(const ModelConfig& c, const BuildOptions& options, bool norm_first) {
  const std::int64_t hidden = c.count({"d_model", "hidden_size"}, 1024);
  const std::int64_t vocab = c.count({"vocab_size"}, 50265);
  const std::int64_t positions = c.count({"max_position_embeddings"}, 1024);
  ModelBuilder m(options);
  const auto tokens = m.embedding("model.shared", vocab, hidden);
  const Side encoder = declare_side(m, c, "encoder", hidden, positions, norm_first);
  const Side decoder = declare_side(m, c, "decoder", hidden, positions, norm_first);
  const auto head = c.flag("tie_word_embeddings", true) ? m.tied_linear("lm_head", tokens)
                                                        : m.linear("lm_head", hidden, vocab);
  m.facts() = {.hidden = hidden,
               .layers = encoder.layers + decoder.layers,
               .vocabulary = vocab,
               .max_positions = positions,
               .attention_heads = decoder.layer.shape.heads,
               .key_value_heads = decoder.layer.shape.heads,
               .encoder_decoder = true};

  embed(m.begin_segment("encoder embedding"), encoder, tokens, Scale::tokens);
  Graph& e = m.begin_segment("encoder layers", encoder.layers, true);
  e.set_output(
      apply(e, encoder.layer, options.attention, e.chained_input({hidden, Scale::tokens})));
  if (encoder.last_norm) {
    Graph& n = m.begin_segment("encoder norm");
    n.set_output(layer_norm(n, *encoder.last_norm, n.chained_input({hidden, Scale::tokens})));
  }
  const std::int32_t encoded = m.share_output("encoder output", {hidden, Scale::tokens});

  embed(m.begin_segment("decoder embedding"), decoder, tokens, Scale::target_tokens);
  const std::int32_t mask = share_causal_mask(m, options.attention, Scale::target_scores);
  const std::int32_t logits_bias = m.share("final_logits_bias", {tokens.rows, Scale::one});
  Graph& d = m.begin_segment("decoder layers", decoder.layers, true);
  const ValueId x = d.chained_input({hidden, Scale::target_tokens});
  const ValueId source = d.shared_input(encoded, {hidden, Scale::tokens});
  d.set_output(apply(d, decoder.layer, options.attention, x, source, mask));

  Graph& h = m.begin_segment("head");
  ValueId last = h.chained_input({hidden, Scale::target_tokens});
  if (decoder.last_norm) last = layer_norm(h, *decoder.last_norm, last);
  h.begin_logits();
  // final_logits_bias is a buffer in the parameters' type, which widens the sum under autocast.
  const ValueId logits = apply(h, head, last);
  const ValueId bias = h.shared_input(logits_bias, {tokens.rows, Scale::one});
  h.set_output(cross_entropy(h, h.map(OpKind::add, logits, bias)));
  return m.build();
}

}  // namespace

Model build_bart(const ModelConfig& c, const BuildOptions& options) {
  return build_bart_like(c, options, false);
}

Model build_mbart(const ModelConfig& c, const BuildOptions& options) {
  return build_bart_like(c, options, true);
}

}  // namespace shardplan
