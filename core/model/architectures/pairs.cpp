// Pairs of a text and an image encoder, trained to tell which text belongs to which image: CLIP
// (models/clip) and SigLIP (models/siglip). A sample is a text and its image.
#include "model/architectures/architectures.h"
#include "model/architectures/images.h"
#include "model/architectures/towers.h"
#include "model/layers/heads.h"

#include <optional>

namespace shardplan {
namespace {

struct PairText {
  std::int64_t hidden, ffn, layers, heads, vocabulary, positions;
  double dropout = 0;
  Activation activation = Activation::gelu;
};

PairText read_text(const ModelConfig& t, const PairText& d, std::string_view activation) {
  const PairText text{.hidden = t.count({"hidden_size"}, d.hidden),
                      .ffn = t.count({"intermediate_size"}, d.ffn),
                      .layers = t.count({"num_hidden_layers"}, d.layers),
                      .heads = t.count({"num_attention_heads"}, d.heads),
                      .vocabulary = t.count({"vocab_size"}, d.vocabulary),
                      .positions = t.count({"max_position_embeddings"}, d.positions),
                      .dropout = t.number("attention_dropout", 0.0),
                      .activation = read_activation(t, "hidden_act", activation)};
  t.require_divisible("hidden_size", text.hidden, "num_attention_heads", text.heads);
  return text;
}

/// What of the two classes differs beside the order of their modules.
struct Pair {
  PairText text;
  EmbeddingModule tokens, places;
  PairLayer layer;
  NormModule last;
  LinearModule text_out;
  std::optional<LinearModule> image_out;  ///< behind the row of the class (CLIP)
  ParameterId scale = kNone, bias = kNone;
  bool causal = false;

  bool softmax() const { return bias == kNone; }  ///< CLIP's loss; SigLIP's: each pair alone
};

void register_text(ModelBuilder& m, Pair& p, PairOrder order) {
  const PairText& t = p.text;
  const std::string at = "text_model.";
  m.facts() = {.hidden = t.hidden,
               .layers = t.layers,
               .vocabulary = t.vocabulary,
               .max_positions = t.positions,
               .attention_heads = t.heads,
               .key_value_heads = t.heads};
  p.tokens = m.embedding(at + "embeddings.token_embedding", t.vocabulary, t.hidden);
  p.places = m.embedding(at + "embeddings.position_embedding", t.positions, t.hidden);
  p.layer = pair_layers(m, at + "encoder.layers", t.layers, t.hidden, t.ffn, order);
  p.last = m.layer_norm(at + "final_layer_norm", t.hidden);
}

/// Keys that older files repeat as "vision_config_dict" and that then count.
ModelConfig part(const ModelConfig& c, const std::string& key) {
  return c.inner(c.entries(key + "_dict") > 0 ? key + "_dict" : key);
}

/// Rows divided by their lengths, which CLIP's class writes out.
ValueId unit_rows(Graph& g, ValueId x, bool written_out) {
  const Extent each{1, g.value(x).extent.scale};
  ValueId lengths = kNone;
  if (written_out) {
    const ValueId squares = g.map(OpKind::power, x);
    lengths = g.map(OpKind::power, g.op({OpKind::sum, {squares, kNone, kNone}}, each));
  } else {
    lengths = g.op({OpKind::power, {x, kNone, kNone}}, each);
  }
  return g.map(OpKind::mul, x, lengths);
}

/// cross_entropy over the rows of [b, b], whose labels count up.
ValueId row_loss(Graph& g, ValueId logits) {
  g.set_autocast(false);  // as it is for every loss: the softmax has the logits' type
  Op loss{OpKind::nll_loss, {g.map(OpKind::log_softmax, logits), kNone, kNone}};
  g.set_autocast(true);
  loss.side = {1, Scale::batch};
  return g.op(loss, {1, Scale::one});
}

/// -logsigmoid(logits), with the sign of those that do not belong together turned, which an fp32
/// product does.
ValueId each_pair_loss(Graph& g, ValueId logits) {
  Op signs{OpKind::copy, {logits, kNone, kNone}};
  signs.detached = true;
  const ValueId constant = g.map(OpKind::to_f32, g.op(signs, {1, Scale::batch_square}));
  const ValueId likely = g.map(OpKind::softplus, g.map(OpKind::mul, logits, constant));
  const ValueId rows = g.op({OpKind::sum, {likely, kNone, kNone}}, {1, Scale::batch});
  return g.op({OpKind::mean, {g.map(OpKind::scalar, rows), kNone, kNone}}, {1, Scale::one});
}

/// The image side: segments whose last one leaves a row for each image, in Model::shared.
std::int32_t write_images(ModelBuilder& m, const Pair& p, const Tower& t, std::int64_t width) {
  write_tower(m, t);
  Graph& g = m.begin_segment("image rows");
  const ValueId x = g.chained_input({t.hidden, Scale::patches});
  if (p.image_out) {
    const ValueId first = g.view(x, {t.hidden, Scale::images});
    g.set_output(apply(g, *p.image_out, layer_norm(g, *t.after, first)));
  } else {
    const ValueId rows = layer_norm(g, *t.after, x);
    g.name_in_output(rows);  // vision_model_output.last_hidden_state
    g.set_output(pooled(g, m, t, rows));
  }
  return m.share_output("image rows", {width, Scale::images});
}

void write_text(ModelBuilder& m, const Pair& p) {
  const PairText& t = p.text;
  const AttentionKind kind = m.options().attention;
  Graph& e = m.begin_segment("embedding");
  e.set_output(
      e.map(OpKind::add, apply(e, p.tokens, Scale::tokens), apply(e, p.places, Scale::sequence)));
  const AttentionShape shape{.heads = t.heads,
                             .kv_heads = t.heads,
                             .head_dim = t.hidden / t.heads,
                             .dropout = t.dropout,
                             .causal = p.causal,
                             .mask = p.causal ? share_causal_mask(m, kind) : kNone};
  Graph& g = m.begin_segment("layers", t.layers, true);
  g.set_output(
      apply(g, p.layer, shape, kind, t.activation, g.chained_input({t.hidden, Scale::tokens})));
}

/// One row of each text, by where it ends (CLIP) or the last one (SigLIP).
ValueId text_row(Graph& g, const Pair& p) {
  const Extent row{p.text.hidden, Scale::batch};
  const ValueId normal = layer_norm(g, p.last, g.chained_input({p.text.hidden, Scale::tokens}));
  if (!p.softmax()) return g.view(normal, row);
  Op pick{OpKind::gather_rows, {normal, kNone, kNone}};
  pick.side = {2, Scale::batch};
  return g.op(pick, row);
}

void write_loss(ModelBuilder& m, const Pair& p, std::int32_t images, std::int64_t width) {
  Graph& g = m.begin_segment("head");
  const ValueId seen = g.shared_input(images, {width, Scale::images});
  const ValueId text = apply(g, p.text_out, text_row(g, p));
  g.begin_logits();
  const ValueId pictures = unit_rows(g, seen, p.softmax());
  const ValueId words = unit_rows(g, text, p.softmax());
  Op product{OpKind::matmul, {words, pictures, kNone}};
  product.work = {width, Scale::batch_square};
  const ValueId alike = g.op(product, {1, Scale::batch_square});
  const ValueId scale = g.map(OpKind::exponential, parameter_value(g, m, p.scale, 1));
  ValueId logits = g.map(OpKind::mul, alike, scale);
  if (p.softmax()) {
    const ValueId rows = row_loss(g, logits);
    return g.set_output(g.map(OpKind::scalar, g.map(OpKind::add, rows, row_loss(g, logits))));
  }
  logits = g.map(OpKind::add, logits, parameter_value(g, m, p.bias, 1));
  g.set_output(each_pair_loss(g, logits));
}

Model finished(const ModelConfig& c, ModelBuilder& m, const Pair& p, const Tower& t,
               std::int64_t width) {
  const BuildOptions& options = m.options();
  const bool trained = reads_images(c, options);
  if (!options.counts_only && (!trained || options.images.per_sample != 1))
    throw InputError({.file = c.file(),
                      .key = "workload.images",
                      .message = "a sample of this network is a text and its image",
                      .expected = "1, or nothing"});
  m.facts().image = {.patches = t.rows(), .values = t.values, .has_tower = true};
  if (!trained) return m.build();
  fixed_tokens(c, options, 0);
  const std::int32_t images = write_images(m, p, t, width);
  write_text(m, p);
  write_loss(m, p, images, width);
  return m.build();
}

}  // namespace

Model build_clip(const ModelConfig& c, const BuildOptions& options) {
  const ModelConfig v = part(c, "vision_config");
  Pair p;
  p.causal = true;
  p.text = read_text(
      part(c, "text_config"),
      {.hidden = 512, .ffn = 2048, .layers = 12, .heads = 8, .vocabulary = 49408, .positions = 77},
      "quick_gelu");
  const std::int64_t out = c.count({"projection_dim"}, 512);
  ModelBuilder m(options);
  p.scale = m.tensor("logit_scale", {}, ParameterKind::other);
  register_text(m, p, PairOrder::clip);
  m.set_trains(tower_trains(options));
  const Tower tower = clip_tower(m, "vision_model.", v, {.patch = 32});
  m.set_trains(projector_trains(options));
  m.set_like_blocks(true);
  p.image_out = m.linear("visual_projection", tower.hidden, out);
  m.set_trains(true);
  p.text_out = m.linear("text_projection", p.text.hidden, out);
  return finished(c, m, p, tower, out);
}

Model build_siglip(const ModelConfig& c, const BuildOptions& options) {
  const ModelConfig t = c.inner("text_config");
  Pair p;
  p.text = read_text(
      t,
      {.hidden = 768, .ffn = 3072, .layers = 12, .heads = 12, .vocabulary = 32000, .positions = 64},
      "gelu_pytorch_tanh");
  ModelBuilder m(options);
  p.scale = m.tensor("logit_scale", {1}, ParameterKind::other);
  p.bias = m.tensor("logit_bias", {1}, ParameterKind::other);
  register_text(m, p, PairOrder::siglip);
  m.set_like_blocks(true);
  const std::int64_t out = t.count({"projection_size"}, p.text.hidden);
  p.text_out = m.linear("text_model.head", p.text.hidden, out, true);
  m.set_trains(tower_trains(options));
  const Tower tower =
      siglip_tower(m, "vision_model.", c.inner("vision_config"), {}, {.head = true});
  if (!options.counts_only && (!tower.head || out != tower.hidden))
    c.fail("vision_config", "text and images do not end in rows of one width",
           "a tower with a head, as wide as the text's projection_size");
  return finished(c, m, p, tower, out);
}

}  // namespace shardplan
