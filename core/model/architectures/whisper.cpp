// Whisper (models/whisper), ForConditionalGeneration. sequence_length counts encoder positions:
// half the mel frames, 1500 for 30 seconds.
#include "model/architectures/architectures.h"
#include "model/layers/convolution.h"
#include "model/layers/heads.h"
#include "model/layers/sequence_layer.h"

namespace shardplan {
namespace {

struct WhisperEncoder {
  TimeConvolution conv1, conv2;
  EmbeddingModule places;
  SequenceLayer layer;
  NormModule norm;
};

/// Writes the encoder's segments. Its output, in Model::shared.
std::int32_t add_encoder(ModelBuilder& m, const WhisperEncoder& w, std::int64_t layers,
                         std::int64_t hidden, double dropped, AttentionKind kind) {
  Graph& f = m.begin_segment("encoder embedding");
  const ValueId mel = convolve(f, w.conv1, 2, Scale::tokens, kNone);
  const ValueId frames = convolve(f, w.conv2, 1, Scale::tokens, mel);
  const ValueId placed = f.map(OpKind::add, frames, apply(f, w.places, Scale::sequence));
  f.set_output(dropout(f, placed, dropped));
  Graph& e = m.begin_segment("encoder layers", layers, true);
  e.set_output(apply(e, w.layer, kind, e.chained_input({hidden, Scale::tokens})));
  Graph& n = m.begin_segment("encoder norm");
  n.set_output(layer_norm(n, w.norm, n.chained_input({hidden, Scale::tokens})));
  return m.share_output("encoder output", {hidden, Scale::tokens});
}

}  // namespace

Model build_whisper(const ModelConfig& c, const BuildOptions& options) {
  const std::int64_t hidden = c.count({"d_model", "hidden_size"}, 384);
  const std::int64_t vocab = c.count({"vocab_size"}, 51865);
  const std::int64_t source_positions = c.count({"max_source_positions"}, 1500);
  const std::int64_t target_positions = c.count({"max_target_positions"}, 448);
  const SequenceShape defaults{
      .heads = 6, .ffn = 1536, .norm_first = true, .key_bias = false, .heads_first = true};
  const SequenceShape encoder_shape = read_sequence_shape(c, "encoder", hidden, defaults);
  const SequenceShape decoder_shape = read_sequence_shape(c, "decoder", hidden, defaults);
  const std::int64_t encoder_layers = c.count({"encoder_layers"}, 4);
  const std::int64_t decoder_layers = c.count({"decoder_layers"}, 4);

  ModelBuilder m(options);
  m.facts() = {.hidden = hidden,
               .layers = encoder_layers + decoder_layers,
               .vocabulary = vocab,
               .max_positions = source_positions,
               .attention_heads = decoder_shape.heads,
               .key_value_heads = decoder_shape.heads,
               .encoder_decoder = true};
  const auto conv1 =
      time_convolution(m, "model.encoder.conv1", c.count({"num_mel_bins"}, 80), hidden);
  const auto conv2 = time_convolution(m, "model.encoder.conv2", hidden, hidden);
  const auto source_places = m.embedding("model.encoder.embed_positions", source_positions, hidden);
  m.freeze(source_places.weight);
  m.begin_repeat("model.encoder.layers", encoder_layers);
  const auto encoder_layer = sequence_layer(m, encoder_shape, false);
  m.end_repeat();
  const auto encoder_norm = m.layer_norm("model.encoder.layer_norm", hidden);
  const auto tokens = m.embedding("model.decoder.embed_tokens", vocab, hidden);
  const auto target_places = m.embedding("model.decoder.embed_positions", target_positions, hidden);
  m.begin_repeat("model.decoder.layers", decoder_layers);
  const auto decoder_layer = sequence_layer(m, decoder_shape, true);
  m.end_repeat();
  const auto decoder_norm = m.layer_norm("model.decoder.layer_norm", hidden);
  const auto head = c.flag("tie_word_embeddings", true) ? m.tied_linear("proj_out", tokens)
                                                        : m.linear("proj_out", hidden, vocab);

  const std::int32_t encoded =
      add_encoder(m, {conv1, conv2, source_places, encoder_layer, encoder_norm}, encoder_layers,
                  hidden, encoder_shape.dropout, options.attention);

  Graph& w = m.begin_segment("decoder embedding");
  const ValueId sum = w.map(OpKind::add, apply(w, tokens, Scale::target_tokens),
                            apply(w, target_places, Scale::target_tokens));
  w.set_output(dropout(w, sum, decoder_shape.dropout));
  const std::int32_t mask = share_causal_mask(m, options.attention, Scale::target_scores);
  Graph& d = m.begin_segment("decoder layers", decoder_layers, true);
  const ValueId x = d.chained_input({hidden, Scale::target_tokens});
  const ValueId source = d.shared_input(encoded, {hidden, Scale::tokens});
  d.set_output(apply(d, decoder_layer, options.attention, x, source, mask));
  Graph& h = m.begin_segment("head");
  const ValueId last = h.chained_input({hidden, Scale::target_tokens});
  const ValueId normal = layer_norm(h, decoder_norm, last);
  h.begin_logits();
  h.set_output(cross_entropy(h, apply(h, head, normal)));
  return m.build();
}

}  // namespace shardplan
