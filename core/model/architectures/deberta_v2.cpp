// DeBERTa V2 and V3 (models/deberta_v2): BERT whose scores have two terms more, of words with
// relative positions and of relative positions with words.
#include <string>

#include "model/architectures/architectures.h"
#include "model/architectures/encoder.h"
#include "model/layers/convolution.h"
#include "model/layers/heads.h"

namespace shardplan {
namespace {

struct Deberta {
  Encoder encoder;
  bool relative = false, word_to_place = false, place_to_word = false;
  bool normal_places = false;  ///< the table of distances goes through a norm, once
  std::int64_t distances = 0;  ///< rows of the table
  EmbeddingModule places;
  NormModule places_norm;
  std::int32_t shared_places = kNone;  ///< in Model::shared
  std::int64_t numbers() const { return checked_mul(distances, encoder.shape.hidden); }
};

struct DebertaHead {
  LinearModule dense, out;
  NormModule norm;
};

Deberta read_deberta(const ModelConfig& c, const BuildOptions& options) {
  Deberta d;
  d.encoder = read_encoder(c, {1536, 6144, 24, 24, 128100, 512});
  d.encoder.shape.activation = read_activation(c, "hidden_act", "gelu");
  if (c.optional_count({"embedding_size"}))
    c.fail("embedding_size", "embeddings of another width are not supported", "no embedding_size");
  if (c.optional_count({"conv_kernel_size"}) && !options.counts_only)
    c.fail("conv_kernel_size", "what a convolution behind the first layer keeps is not described",
           "shardplan model, which counts it, or a network without it");
  d.relative = c.flag("relative_attention", false);
  if (d.relative && !c.flag("share_att_key", false))
    c.fail("share_att_key", "positions with projections of their own are not supported", "true");
  if (!c.flag("legacy", true)) c.fail("legacy", "the newer head is not supported", "true");
  std::string terms = c.is_list("pos_att_type") ? "" : c.text("pos_att_type", "");
  if (c.is_list("pos_att_type"))
    for (const std::string& term : c.texts("pos_att_type")) terms += term + "|";
  d.word_to_place = d.relative && terms.find("c2p") != std::string::npos;
  d.place_to_word = d.relative && terms.find("p2c") != std::string::npos;
  const double buckets = c.number("position_buckets", -1);
  const double reach = c.number("max_relative_positions", -1);
  d.distances = 2 * (buckets > 0  ? static_cast<std::int64_t>(buckets)
                     : reach >= 1 ? static_cast<std::int64_t>(reach)
                                  : d.encoder.positions);
  d.normal_places = c.text("norm_rel_ebd", "none").find("layer_norm") != std::string::npos;
  return d;
}

/// Heads in front of tokens: a copy, whatever the batch.
ValueId by_heads(Graph& g, const LinearModule& linear, ValueId x) {
  return g.map(OpKind::copy, apply(g, linear, x));
}

/// The table of distances through a projection of the words, once for each sample.
ValueId places_by_heads(Graph& g, const LinearModule& linear, ValueId table) {
  return g.op({OpKind::copy, {by_heads(g, linear, table), kNone, kNone}},
              {per(g, table), Scale::batch});
}

/// One term of the scores: each row's products with all distances, of which those to the others
/// are picked.
ValueId distance_term(Graph& g, const Deberta& d, ValueId rows, ValueId places) {
  const EncoderShape& s = d.encoder.shape;
  Op product{OpKind::matmul, {rows, places, kNone}};
  product.work = {checked_mul(s.hidden, d.distances), Scale::tokens};
  const ValueId all = g.op(product, {checked_mul(s.heads, d.distances), Scale::tokens});
  Op pick{OpKind::gather_columns, {all, kNone, kNone}};
  pick.side = {1, Scale::square};
  return g.map(OpKind::scalar, g.op(pick, {s.heads, Scale::scores}));
}

ValueId distance_scores(Graph& g, const Deberta& d, const EncoderLayer& l, ValueId q, ValueId k) {
  ValueId table = kNone;
  if (d.normal_places) {
    table = g.shared_input(d.shared_places, {d.numbers(), Scale::one});
  } else {
    Op parameter{OpKind::parameter};
    parameter.module = d.places.module;
    parameter.weight = d.places.weight;
    table = g.op(parameter, {d.numbers(), Scale::one});
  }
  table = dropout(g, table, d.encoder.shape.hidden_dropout);
  const ValueId queries = places_by_heads(g, l.query, table);
  const ValueId keys = places_by_heads(g, l.key, table);
  ValueId sum = kNone;
  if (d.word_to_place) sum = g.map(OpKind::scalar, distance_term(g, d, q, keys));
  if (d.place_to_word) {
    const ValueId term = distance_term(g, d, k, queries);
    sum = sum == kNone ? g.map(OpKind::scalar, term) : g.map(OpKind::add, sum, term);
  }
  return sum;
}

/// DisentangledSelfAttention.forward, which is eager always.
ValueId disentangled_attention(Graph& g, const Deberta& d, const EncoderLayer& l, ValueId x) {
  const EncoderShape& s = d.encoder.shape;
  const Extent pairs{s.heads, Scale::scores};
  const ValueId q = by_heads(g, l.query, x);
  const ValueId k = by_heads(g, l.key, x);
  const ValueId v = by_heads(g, l.value, x);
  Op product{OpKind::matmul, {q, g.map(OpKind::scalar, k), kNone}};
  product.work = {s.hidden, Scale::scores};
  ValueId scores = g.op(product, pairs);
  const ValueId distances = d.relative ? distance_scores(g, d, l, q, k) : kNone;
  if (distances != kNone) scores = g.map(OpKind::add, scores, distances);
  Op mask{OpKind::masked, {scores, kNone, kNone}};
  mask.side = {1, Scale::scores};
  const ValueId probabilities =
      dropout(g, g.map(OpKind::softmax, g.op(mask, pairs)), s.attention_dropout);
  Op mix{OpKind::matmul, {probabilities, v, kNone}};
  mix.work = {s.hidden, Scale::scores};
  return g.map(OpKind::copy, g.op(mix, {s.hidden, Scale::tokens}));
}

void declare_deberta_convolution(ModelBuilder& m, const ModelConfig& c, std::int64_t hidden) {
  const auto kernel = c.optional_count({"conv_kernel_size"});
  if (!kernel) return;
  const std::int64_t groups = c.count({"conv_groups"}, 1);
  c.require_divisible("hidden_size", hidden, "conv_groups", groups);
  m.tensor("deberta.encoder.conv.conv.weight", {hidden, hidden / groups, *kernel},
           ParameterKind::other);
  m.tensor("deberta.encoder.conv.conv.bias", {hidden}, ParameterKind::bias);
  m.layer_norm("deberta.encoder.conv.LayerNorm", hidden);
}

DebertaHead declare_deberta_head(ModelBuilder& m, const ModelConfig& c, const Encoder& e,
                                 const EmbeddingModule& words) {
  DebertaHead h;
  const std::int64_t hidden = e.shape.hidden;
  const ModelHead& head = m.options().head;
  if (head.kind == HeadKind::language_model) {
    const ParameterId bias = m.tensor("cls.predictions.bias", {e.vocab}, ParameterKind::bias);
    m.set_like_blocks(true);  // peft's word for all linears means it too
    h.dense = m.linear("cls.predictions.transform.dense", hidden, hidden, true);
    m.set_like_blocks(false);
    h.norm = m.layer_norm("cls.predictions.transform.LayerNorm", hidden);
    if (!c.flag("tie_word_embeddings", true))
      c.fail("tie_word_embeddings", "a head of its own is not supported", "true");
    h.out = m.tied_linear("cls.predictions.decoder", words);
    h.out.bias = bias;
    m.tie(h.out.module, bias);
  }
  if (head.kind == HeadKind::sequence) h.dense = m.linear("pooler.dense", hidden, hidden, true);
  if (head.kind == HeadKind::sequence || head.kind == HeadKind::token)
    h.out = m.linear("classifier", hidden, head.labels, true);
  return h;
}

ValueId deberta_loss(Graph& g, const ModelConfig& c, const Deberta& d, const DebertaHead& h,
                     const ModelHead& head, ValueId x) {
  const EncoderShape& s = d.encoder.shape;
  switch (head.kind) {
    case HeadKind::none:
      break;
    case HeadKind::language_model: {
      const ValueId inner = activate(g, s.activation, apply(g, h.dense, x));
      const ValueId normal = layer_norm(g, h.norm, inner);
      g.begin_logits();
      return cross_entropy(g, apply(g, h.out, normal));
    }
    case HeadKind::sequence: {
      const ValueId first = dropout(g, first_token(g, x), c.number("pooler_dropout", 0.0));
      const Activation act = read_activation(c, "pooler_hidden_act", "gelu");
      const ValueId pooled = activate(g, act, apply(g, h.dense, first));
      const ValueId dropped = dropout(g, pooled, c.number("cls_dropout", s.hidden_dropout));
      // Rows that have a label are picked.
      Op pick{OpKind::gather_columns, {apply(g, h.out, dropped), kNone, kNone}};
      pick.side = {1, Scale::batch};
      const ValueId picked = g.op(pick, {head.labels, Scale::batch});
      return cross_entropy(g, g.map(OpKind::to_f32, picked));
    }
    case HeadKind::token:
      return cross_entropy(g, apply(g, h.out, dropout(g, x, s.hidden_dropout)));
  }
  return mean_loss(g, x);
}

/// What the encoder makes once: the table of distances, their list for all pairs and the mask, both
/// in int64.
void share_deberta(ModelBuilder& m, Deberta& d) {
  if (!d.relative || !d.normal_places) return;
  Graph& p = m.begin_segment("relative positions norm");
  Op table{OpKind::parameter};
  table.module = d.places.module;
  table.weight = d.places.weight;
  p.set_output(layer_norm(p, d.places_norm, p.op(table, {d.numbers(), Scale::one})));
  d.shared_places = m.share_output("relative positions", {d.numbers(), Scale::one});
}

void embed_deberta(ModelBuilder& m, const Deberta& d, const EmbeddingModule& words,
                   const EmbeddingModule* places, const EmbeddingModule* types,
                   const NormModule& norm) {
  Graph& g = m.begin_segment("embedding");
  ValueId sum = apply(g, words, Scale::tokens);
  if (places != nullptr) sum = g.map(OpKind::add, sum, apply(g, *places, Scale::sequence));
  if (types != nullptr) sum = g.map(OpKind::add, sum, apply(g, *types, Scale::tokens));
  const ValueId normal = layer_norm(g, norm, sum);
  Op tokens{OpKind::copy, {normal, kNone, kNone}};  // the mask of them, in the same type
  tokens.detached = true;
  const ValueId masked = g.map(OpKind::mul, normal, g.op(tokens, {1, Scale::tokens}));
  g.set_output(dropout(g, masked, d.encoder.shape.hidden_dropout));
  if (d.relative) m.share("distances", {2, Scale::square}, true);
  m.share("pairs of tokens", {2, Scale::scores}, true);
}

}  // namespace

Model build_deberta_v2(const ModelConfig& c, const BuildOptions& options) {
  Deberta d = read_deberta(c, options);
  require_training(c, options, "encoders");
  const std::int64_t hidden = d.encoder.shape.hidden;
  ModelBuilder m(options);
  m.facts() = facts_of(d.encoder);
  m.facts().supports_sdpa = false;
  m.facts().supports_flash_attn = false;
  m.facts().undivided = true;
  const std::string at = "deberta.embeddings.";
  const auto words = m.embedding(at + "word_embeddings", d.encoder.vocab, hidden);
  const bool placed = c.flag("position_biased_input", true);
  const std::int64_t kinds = c.count_or_zero("type_vocab_size", 0);
  EmbeddingModule places, types;
  if (placed) places = m.embedding(at + "position_embeddings", d.encoder.positions, hidden);
  if (kinds > 0) types = m.embedding(at + "token_type_embeddings", kinds, hidden);
  const auto norm = m.layer_norm(at + "LayerNorm", hidden);
  m.begin_repeat("deberta.encoder.layer", d.encoder.layers);
  const EncoderLayer layer = encoder_layer(m, d.encoder.shape, "_proj");
  m.end_repeat();
  if (d.relative) d.places = m.embedding("deberta.encoder.rel_embeddings", d.distances, hidden);
  if (d.normal_places) d.places_norm = m.layer_norm("deberta.encoder.LayerNorm", hidden);
  declare_deberta_convolution(m, c, hidden);
  const DebertaHead head = declare_deberta_head(m, c, d.encoder, words);

  share_deberta(m, d);
  embed_deberta(m, d, words, placed ? &places : nullptr, kinds > 0 ? &types : nullptr, norm);
  Graph& g = m.begin_segment("layers", d.encoder.layers, true);
  const ValueId x = g.chained_input({hidden, Scale::tokens});
  g.set_output(
      after_attention(g, layer, d.encoder.shape, x, disentangled_attention(g, d, layer, x)));
  Graph& h = m.begin_segment("head");
  h.set_output(deberta_loss(h, c, d, head, options.head, h.chained_input({hidden, Scale::tokens})));
  return m.build();
}

}  // namespace shardplan
