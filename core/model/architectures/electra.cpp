// ELECTRA (models/electra): BERT whose embeddings may be narrower than its layers.
#include <string>

#include "model/architectures/architectures.h"
#include "model/architectures/encoder.h"
#include "model/layers/convolution.h"
#include "model/layers/heads.h"

namespace shardplan {
namespace {

struct ElectraHead {
  LinearModule dense, out;
  NormModule norm;
};

ElectraHead declare_electra_head(ModelBuilder& m, const ModelConfig& c, const Encoder& e,
                                 const EmbeddingModule& words) {
  ElectraHead h;
  const ModelHead& head = m.options().head;
  switch (head.kind) {
    case HeadKind::none:
      break;
    case HeadKind::language_model:
      h.norm = m.layer_norm("generator_predictions.LayerNorm", words.width);
      m.set_like_blocks(true);  // peft's word for all linears means it too
      h.dense = m.linear("generator_predictions.dense", e.shape.hidden, words.width, true);
      m.set_like_blocks(false);
      h.out = c.flag("tie_word_embeddings", true)
                  ? m.tied_linear("generator_lm_head", words, true)
                  : m.linear("generator_lm_head", words.width, e.vocab, true);
      break;
    case HeadKind::sequence:
      h.dense = m.linear("classifier.dense", e.shape.hidden, e.shape.hidden, true);
      h.out = m.linear("classifier.out_proj", e.shape.hidden, head.labels, true);
      break;
    case HeadKind::token:
      h.out = m.linear("classifier", e.shape.hidden, head.labels, true);
      break;
  }
  return h;
}

ValueId electra_loss(Graph& g, const ModelHead& head, const Encoder& e, const ElectraHead& h,
                     ValueId x) {
  const double rate = e.classifier_dropout;
  switch (head.kind) {
    case HeadKind::none:
      break;
    case HeadKind::language_model: {
      const ValueId inner = g.map(OpKind::gelu, apply(g, h.dense, x));
      const ValueId normal = layer_norm(g, h.norm, inner);
      g.begin_logits();
      return cross_entropy(g, apply(g, h.out, normal));
    }
    case HeadKind::sequence: {
      const ValueId first = dropout(g, first_token(g, x), rate);
      const ValueId inner = dropout(g, g.map(OpKind::gelu, apply(g, h.dense, first)), rate);
      return cross_entropy(g, apply(g, h.out, inner));
    }
    case HeadKind::token:
      return cross_entropy(g, apply(g, h.out, dropout(g, x, rate)));
  }
  return mean_loss(g, x);
}

}  // namespace

Model build_electra(const ModelConfig& c, const BuildOptions& options) {
  Encoder e = read_encoder(c, {256, 1024, 12, 4, 30522, 512});
  e.shape.activation = read_activation(c, "hidden_act", "gelu");
  require_training(c, options, "encoders");
  const std::int64_t width = c.count({"embedding_size"}, 128);
  ModelBuilder m(options);
  m.facts() = facts_of(e);
  const std::string at = "electra.embeddings.";
  const auto words = m.embedding(at + "word_embeddings", e.vocab, width);
  const auto places = m.embedding(at + "position_embeddings", e.positions, width);
  const auto types =
      m.embedding(at + "token_type_embeddings", c.count({"type_vocab_size"}, 2), width);
  const auto norm = m.layer_norm(at + "LayerNorm", width);
  LinearModule project;
  m.set_like_blocks(true);  // peft's word for all linears means it too
  if (width != e.shape.hidden)
    project = m.linear("electra.embeddings_project", width, e.shape.hidden, true);
  m.set_like_blocks(false);
  m.begin_repeat("electra.encoder.layer", e.layers);
  const EncoderLayer layer = encoder_layer(m, e.shape);
  m.end_repeat();
  const ElectraHead head = declare_electra_head(m, c, e, words);

  Graph& g = m.begin_segment("embedding");
  const ValueId rows = apply(g, words, Scale::tokens), kinds = apply(g, types, Scale::tokens);
  const ValueId positions = apply(g, places, Scale::sequence);
  const ValueId sum = g.map(OpKind::add, g.map(OpKind::add, rows, kinds), positions);
  const ValueId out = dropout(g, layer_norm(g, norm, sum), e.shape.hidden_dropout);
  for (const ValueId local : {rows, kinds, positions}) g.hold(local, out);
  g.set_output(width == e.shape.hidden ? out : apply(g, project, out));
  Graph& l = m.begin_segment("layers", e.layers, true);
  l.set_output(apply(l, layer, e.shape, options.attention,
                     l.chained_input({e.shape.hidden, Scale::tokens})));
  Graph& h = m.begin_segment("head");
  h.set_output(
      electra_loss(h, options.head, e, head, h.chained_input({e.shape.hidden, Scale::tokens})));
  return m.build();
}

}  // namespace shardplan
