// BART (models/bart) and mBART (models/mbart), ForConditionalGeneration, and what their
// descendants share.
#include "model/architectures/bart.h"

#include <optional>

#include "model/architectures/architectures.h"
#include "model/layers/heads.h"
#include "model/layers/sequence_layer.h"

namespace shardplan {
namespace {

struct Side {
  EmbeddingModule tokens;
  EmbeddingModule positions;
  std::int32_t table = kNone;  ///< in Model::shared: places in a buffer
  SequenceLayer layer;
  std::int64_t layers = 0;
  std::optional<NormModule> embedding_norm, last_norm;
  double dropout = 0;
};

Side declare_side(ModelBuilder& m, const ModelConfig& c, const BartDescription& d,
                  const std::string& side, const EmbeddingModule& tokens, std::int64_t positions) {
  const std::int64_t hidden = tokens.width;
  const bool decoder = side == "decoder";
  const std::string layers_key = side + "_layers", prefix = "model." + side + ".";
  const SequenceShape shape = read_sequence_shape(c, side, hidden,
                                                  {.heads = 16,
                                                   .ffn = 4096,
                                                   .norm_first = d.norm_first,
                                                   .activation_name = d.activation,
                                                   .dropout = 0.1,
                                                   .attention_dropout = d.attention_dropout});
  Side s;
  s.dropout = shape.dropout;
  s.layers = c.count({layers_key}, 12);
  // Untied, each side has a table of its own, and nothing reads the shared one.
  s.tokens = c.flag("tie_word_embeddings", true)
                 ? tokens
                 : m.embedding(prefix + "embed_tokens", tokens.rows, hidden);
  if (d.places == BartPlaces::learned)
    s.positions = m.embedding(prefix + "embed_positions", positions + 2, hidden);
  if (d.places == BartPlaces::sinusoidal) {
    s.positions = m.embedding(prefix + "embed_positions", positions, hidden);
    m.freeze(s.positions.weight);
  }
  m.begin_repeat(prefix + "layers", s.layers);
  s.layer = sequence_layer(m, shape, decoder);
  m.end_repeat();
  if (d.embedding_norm) s.embedding_norm = m.layer_norm(prefix + "layernorm_embedding", hidden);
  if (d.last_norm) s.last_norm = m.layer_norm(prefix + "layer_norm", hidden);
  return s;
}

/// The places of tokens of `scale`.
ValueId places_of(Graph& g, const BartDescription& d, const Side& s, std::int64_t positions,
                  Scale scale, std::int64_t hidden) {
  if (d.places != BartPlaces::computed) return apply(g, s.positions, scale);
  const ValueId table = g.shared_input(s.table, {checked_mul(positions + 2, hidden), Scale::one});
  return g.op({OpKind::copy, {table, kNone, kNone}}, {hidden, scale});
}

void embed(Graph& g, const Side& s, ValueId places, Scale scale) {
  const ValueId scaled = apply_scaled(g, s.tokens, scale);
  const ValueId sum = g.map(OpKind::add, scaled, places);
  const ValueId normal = s.embedding_norm ? layer_norm(g, *s.embedding_norm, sum) : sum;
  const ValueId out = dropout(g, normal, s.dropout);
  g.hold(scaled, out);
  g.set_output(out);
}

/// Megatron-LM's kernels are known beside learned places alone.
void check_kernels(const ModelConfig& c, const BuildOptions& options, const BartDescription& d) {
  if (options.kernels == KernelSet::megatron && d.places != BartPlaces::learned)
    c.fail("model_type",
           "an encoder and a decoder of this kind are described as transformers runs them",
           "framework single, ddp, fsdp1, fsdp2 or deepspeed");
}

}  // namespace

Model build_bart_like(const ModelConfig& c, const BuildOptions& options,
                      const BartDescription& described) {
  check_kernels(c, options, described);
  const std::int64_t hidden = c.count({"d_model", "hidden_size"}, 1024);
  const std::int64_t vocab = c.count({"vocab_size"}, described.vocab);
  const std::int64_t positions = c.count({"max_position_embeddings"}, described.positions);
  ModelBuilder m(options);
  const bool tied = c.flag("tie_word_embeddings", true);
  m.set_trains(tied || options.counts_only);
  const auto tokens = m.embedding("model.shared", vocab, hidden);
  m.set_trains(true);
  Side encoder = declare_side(m, c, described, "encoder", tokens, positions);
  Side decoder = declare_side(m, c, described, "decoder", tokens, positions);
  const auto head = tied ? m.tied_linear("lm_head", tokens) : m.linear("lm_head", hidden, vocab);
  m.facts() = {.hidden = hidden,
               .layers = encoder.layers + decoder.layers,
               .vocabulary = vocab,
               .max_positions = positions,
               .attention_heads = decoder.layer.shape.heads,
               .key_value_heads = decoder.layer.shape.heads,
               .encoder_decoder = true};
  const auto begin = [&](const char* name, Side& side, Scale scale) {
    Graph& g = m.begin_segment(name);
    if (described.places == BartPlaces::computed)
      side.table = m.share("places", {checked_mul(positions + 2, hidden), Scale::one});
    embed(g, side, places_of(g, described, side, positions, scale, hidden), scale);
  };

  begin("encoder embedding", encoder, Scale::tokens);
  Graph& e = m.begin_segment("encoder layers", encoder.layers, true);
  e.set_output(
      apply(e, encoder.layer, options.attention, e.chained_input({hidden, Scale::tokens})));
  if (encoder.last_norm) {
    Graph& n = m.begin_segment("encoder norm");
    n.set_output(layer_norm(n, *encoder.last_norm, n.chained_input({hidden, Scale::tokens})));
  }
  const std::int32_t encoded = m.share_output("encoder output", {hidden, Scale::tokens});

  begin("decoder embedding", decoder, Scale::target_tokens);
  const std::int32_t mask = share_causal_mask(m, options.attention, Scale::target_scores);
  const std::int32_t logits_bias =
      described.logits_bias ? m.share("final_logits_bias", {tokens.rows, Scale::one}) : kNone;
  Graph& d = m.begin_segment("decoder layers", decoder.layers, true);
  const ValueId x = d.chained_input({hidden, Scale::target_tokens});
  const ValueId source = d.shared_input(encoded, {hidden, Scale::tokens});
  d.set_output(apply(d, decoder.layer, options.attention, x, source, mask));

  Graph& h = m.begin_segment("head");
  ValueId last = h.chained_input({hidden, Scale::target_tokens});
  if (decoder.last_norm) last = layer_norm(h, *decoder.last_norm, last);
  h.begin_logits();
  ValueId logits = apply(h, head, last);
  // final_logits_bias is a buffer in the parameters' type, which widens the sum under autocast.
  if (described.logits_bias)
    logits = h.map(OpKind::add, logits, h.shared_input(logits_bias, {tokens.rows, Scale::one}));
  h.set_output(cross_entropy(h, logits));
  return m.build();
}

Model build_bart(const ModelConfig& c, const BuildOptions& options) {
  return build_bart_like(c, options, {.norm_first = false, .last_norm = false});
}

Model build_mbart(const ModelConfig& c, const BuildOptions& options) {
  return build_bart_like(c, options, {});
}

}  // namespace shardplan
