// Wav2Vec2 (models/wav2vec2): convolutions over the samples of a sound, then an encoder, under the
// class that "architectures" names, or ForCTC. sequence_length counts the encoder's frames.
#include <string>

#include "model/architectures/architectures.h"
#include "model/architectures/feature_encoder.h"
#include "model/layers/convolution.h"
#include "model/layers/ctc_loss.h"
#include "model/layers/heads.h"
#include "model/layers/sequence_layer.h"

namespace shardplan {
namespace {

/// SpecAugment: which of the projected frames are overwritten in training.
struct Masking {
  ParameterId vector = kNone;  ///< in the places of masked frames; kNone: the class has none
  bool time = false;           ///< frames
  bool features = false;       ///< columns
};

struct Wav2Vec2 {
  std::int64_t hidden = 0, vocabulary = 0, layers = 0;
  FeatureEncoder features;
  NormModule feature_norm, norm;
  LinearModule projection;
  double projection_dropout = 0, final_dropout = 0;
  Masking masking;
  NormedConvolution positions;
  SequenceLayer layer;
  CtcOptions ctc;
  LinearModule projector, head;
};

Masking declare_masking(ModelBuilder& m, const ModelConfig& c, std::int64_t hidden) {
  const bool augments = c.flag("apply_spec_augment", true);
  const bool time = c.number("mask_time_prob", 0.05) > 0;
  const bool features = c.number("mask_feature_prob", 0.0) > 0;
  Masking masking{.time = augments && time, .features = augments && features};
  if (!time && !features) return masking;
  const bool trained = m.trains();
  m.set_trains(trained && (masking.time || m.options().counts_only));
  masking.vector = m.tensor("wav2vec2.masked_spec_embed", {hidden}, ParameterKind::other);
  m.set_trains(trained);
  return masking;
}

SequenceShape read_shape(const ModelConfig& c, std::int64_t hidden) {
  SequenceShape s;
  s.hidden = hidden;
  s.heads = c.count({"num_attention_heads"}, 12);
  s.ffn = c.count({"intermediate_size"}, 3072);
  s.norm_first = c.flag("do_stable_layer_norm", false);
  s.activation = read_activation(c, "hidden_act", "gelu");
  s.dropout = c.number("hidden_dropout", 0.1);
  s.attention_dropout = c.number("attention_dropout", 0.1);
  s.activation_dropout = c.number("activation_dropout", 0.1);
  c.require_divisible("hidden_size", hidden, "num_attention_heads", s.heads);
  return s;
}

void declare_layers(ModelBuilder& m, Wav2Vec2& w, const SequenceShape& s) {
  m.begin_repeat("wav2vec2.encoder.layers", w.layers);
  SequenceLayer& l = w.layer;
  const auto square = [&](const char* name) { return m.linear(name, s.hidden, s.hidden, true); };
  l.shape = s;
  l.self.k = square("attention.k_proj");
  l.self.v = square("attention.v_proj");
  l.self.q = square("attention.q_proj");
  l.self.out = square("attention.out_proj");
  l.self.norm = m.layer_norm("layer_norm", s.hidden);
  l.fc1 = m.linear("feed_forward.intermediate_dense", s.hidden, s.ffn, true);
  l.fc2 = m.linear("feed_forward.output_dense", s.ffn, s.hidden, true);
  l.norm = m.layer_norm("final_layer_norm", s.hidden);
  m.end_repeat();
}

void declare_head(ModelBuilder& m, const ModelConfig& c, Wav2Vec2& w) {
  const ModelHead& head = m.options().head;
  if (head.kind == HeadKind::language_model) {
    w.head = m.linear("lm_head", w.hidden, w.vocabulary, true);
    w.ctc = {.mean = c.text("ctc_loss_reduction", "sum") == "mean",
             .zeroes_infinite = c.flag("ctc_zero_infinity", false)};
    w.final_dropout = c.number("final_dropout", 0.1);
  }
  if (head.kind == HeadKind::sequence) {
    const std::int64_t width = c.count({"classifier_proj_size"}, 256);
    w.projector = m.linear("projector", w.hidden, width, true);
    w.head = m.linear("classifier", width, head.labels, true);
  }
  if (head.kind == HeadKind::token) w.head = m.linear("classifier", w.hidden, head.labels, true);
}

/// _mask_hidden_states: both write over what the projection made.
ValueId masked(Graph& g, const ModelBuilder& m, const Wav2Vec2& w, ValueId x) {
  const Extent all = g.value(x).extent;
  if (w.masking.time) {
    const ValueId vector = parameter_value(g, m, w.masking.vector, w.hidden);
    Op op{OpKind::place_rows, {x, g.map(OpKind::to_like, vector, x), kNone}};
    op.in_place = InPlace::whole;
    op.side = {1, Scale::tokens};
    x = g.op(op, all);
  }
  if (!w.masking.features) return x;
  Op op{OpKind::masked, {x, kNone, kNone}};
  op.in_place = InPlace::whole;
  op.side = {w.hidden, Scale::batch};
  return g.op(op, all);
}

void write_embedding(ModelBuilder& m, const Wav2Vec2& w) {
  Graph& g = m.begin_segment("embedding");
  const std::int64_t channels = w.features.channels();
  const ValueId frames = g.chained_input({channels, Scale::tokens});
  Op norm{OpKind::layer_norm, {frames, kNone, kNone}};
  norm.module = w.feature_norm.module;
  norm.weight = w.feature_norm.weight;
  norm.bias = w.feature_norm.bias;
  norm.side = {1, Scale::tokens};
  norm.transposed = !w.features.each_normed;
  const ValueId normal = g.op(norm, {channels, Scale::tokens});
  g.name_in_output(normal);  // extract_features
  const ValueId x =
      masked(g, m, w, dropout(g, apply(g, w.projection, normal), w.projection_dropout));
  const ValueId places = activate(g, w.features.activation, apply(g, m, w.positions, x));
  const ValueId sum = g.map(OpKind::add, x, places);
  const SequenceShape& s = w.layer.shape;
  const ValueId out = dropout(g, s.norm_first ? sum : layer_norm(g, w.norm, sum), s.dropout);
  g.hold(places, out);
  g.set_output(out);
}

ValueId loss_of(Graph& g, const Wav2Vec2& w, HeadKind head, ValueId x) {
  switch (head) {
    case HeadKind::none:
      break;
    case HeadKind::language_model: {
      const ValueId dropped = dropout(g, x, w.final_dropout);
      g.begin_logits();
      const ValueId loss = ctc_loss(g, w.ctc, apply(g, w.head, dropped));
      for (const ValueId local : {x, dropped}) g.hold(local, loss);
      return loss;
    }
    case HeadKind::sequence: {
      const ValueId rows = apply(g, w.projector, x);
      return cross_entropy(
          g, apply(g, w.head,
                   g.op({OpKind::mean, {rows, kNone, kNone}}, {w.projector.out, Scale::batch})));
    }
    case HeadKind::token:  // labels are the largest of a row
      return cross_entropy(g, apply(g, w.head, x), {1, Scale::tokens});
  }
  return mean_loss(g, x);
}

void check_keys(const ModelConfig& c, const BuildOptions& options) {
  for (const char* flag : {"add_adapter", "use_weighted_layer_sum"})
    if (c.flag(flag, false)) c.fail(flag, "its tensors are not described", "false");
  if (c.optional_count({"adapter_attn_dim"}))
    c.fail("adapter_attn_dim", "adapters of attention are not described", "null");
  require_training(c, options, "encoders of sound");
  if (!options.counts_only && options.images.frozen == FrozenParts::tower_and_projector)
    throw InputError({.file = c.file(),
                      .key = "workload.frozen",
                      .message = "found tower_and_projector, but this network freezes its feature "
                                 "encoder alone",
                      .expected = "nothing, or tower"});
}

void note(ModelFacts& facts, const ModelConfig& c, const Wav2Vec2& w) {
  facts.undivided = true;
  facts.asks_itself = true;
  facts.tower = "feature encoder";
  facts.usual_length = 1500;  // 30 seconds, as Whisper
  facts.brings = with_per(w.features.positions(0), 1);
  facts.assumed.push_back(w.features.words());
  if (c.number("layerdrop", 0.1) > 0)
    facts.assumed.emplace_back(
        "every layer runs: a step whose layerdrop leaves some out takes less");
}

}  // namespace

Model build_wav2vec2(const ModelConfig& c, const BuildOptions& options) {
  check_keys(c, options);
  Wav2Vec2 w;
  w.hidden = c.count({"hidden_size"}, 768);
  w.vocabulary = c.count({"vocab_size"}, 32);
  w.layers = c.count({"num_hidden_layers"}, 12);
  const SequenceShape shape = read_shape(c, w.hidden);
  const std::int64_t groups = c.count({"num_conv_pos_embedding_groups"}, 16);
  c.require_divisible("hidden_size", w.hidden, "num_conv_pos_embedding_groups", groups);
  ModelBuilder m(options);
  m.facts() = {.hidden = w.hidden,
               .layers = w.layers,
               .vocabulary = w.vocabulary,
               .attention_heads = shape.heads,
               .key_value_heads = shape.heads};
  w.masking = declare_masking(m, c, w.hidden);
  w.features = feature_encoder(m, "wav2vec2.feature_extractor.", c);
  w.feature_norm = m.layer_norm("wav2vec2.feature_projection.layer_norm", w.features.channels());
  w.projection =
      m.linear("wav2vec2.feature_projection.projection", w.features.channels(), w.hidden, true);
  w.projection_dropout = c.number("feat_proj_dropout", 0.0);
  w.positions = normed_convolution(m, "wav2vec2.encoder.pos_conv_embed.conv", w.hidden,
                                   c.count({"num_conv_pos_embeddings"}, 128), groups);
  w.norm = m.layer_norm("wav2vec2.encoder.layer_norm", w.hidden);
  declare_layers(m, w, shape);
  declare_head(m, c, w);
  note(m.facts(), c, w);
  m.facts().aligns_labels = options.head.kind == HeadKind::language_model;

  write_feature_encoder(m, w.features);
  write_embedding(m, w);
  Graph& l = m.begin_segment("layers", w.layers, true);
  l.set_output(apply(l, w.layer, options.attention, l.chained_input({w.hidden, Scale::tokens})));
  Graph& h = m.begin_segment("head");
  const ValueId last = h.chained_input({w.hidden, Scale::tokens});
  const ValueId x = shape.norm_first ? layer_norm(h, w.norm, last) : last;
  h.set_output(loss_of(h, w, options.head.kind, x));
  Model model = m.build();
  for (std::size_t i = 0; i < w.features.layers.size(); ++i) model.segments[i].of_images = true;
  return model;
}

}  // namespace shardplan
