// DINOv2 (models/dinov2): Dinov2Model, or Dinov2ForImageClassification when "architectures",
// num_labels or id2label say so. sequence_length counts patches and the class token.
#include "model/architectures/architectures.h"
#include "model/architectures/towers.h"
#include "model/layers/attention.h"
#include "model/layers/heads.h"
#include "model/layers/mlp.h"

#include <fmt/format.h>

namespace shardplan {
namespace {

struct Dino {
  ParameterId token = kNone, places = kNone, kernel = kNone, kernel_bias = kNone;
  ParameterId scale1 = kNone, scale2 = kNone;
  NormModule before, after, last;
  LinearModule q, k, v, out, up, down;
  Activation activation = Activation::gelu;
  bool gated = false;
  std::int64_t hidden = 0, heads = 0, layers = 0, positions = 0;
  std::int64_t products = 0;  ///< multiply-adds of one patch
  double dropout = 0, attention_dropout = 0, drop_path = 0;
};

bool classifies_images(const ModelConfig& c) {
  const std::vector<std::string> named = c.texts("architectures");
  if (named.empty()) return c.has("num_labels") || c.has("id2label") || c.entries("id2label") > 0;
  if (named.front() == "Dinov2ForImageClassification") return true;
  if (named.front() == "Dinov2Model") return false;
  c.fail("architectures", "unsupported class '" + named.front() + "'",
         "Dinov2Model or Dinov2ForImageClassification");
}

Dino read_dino(const ModelConfig& c) {
  Dino d;
  d.hidden = c.count({"hidden_size"}, 768);
  d.heads = c.count({"num_attention_heads"}, 12);
  d.layers = c.count({"num_hidden_layers"}, 12);
  c.require_divisible("hidden_size", d.hidden, "num_attention_heads", d.heads);
  d.positions = patches_of(c, 224, 14) + 1;
  d.activation = read_activation(c, "hidden_act", "gelu");
  d.gated = c.flag("use_swiglu_ffn", false);
  d.dropout = c.number("hidden_dropout_prob", 0.0);
  d.attention_dropout = c.number("attention_probs_dropout_prob", 0.0);
  d.drop_path = c.number("drop_path_rate", 0.0);
  return d;
}

void register_dino_embedding(ModelBuilder& m, const ModelConfig& c, const std::string& prefix,
                             Dino& d) {
  const std::string at = prefix + "embeddings.";
  const std::int64_t patch = side_of(c, "patch_size", 14), channels = c.count({"num_channels"}, 3);
  d.token = m.tensor(at + "cls_token", {1, 1, d.hidden}, ParameterKind::other);
  if (c.flag("use_mask_token", true)) {
    m.set_trains(m.options().counts_only);  // nothing is masked: it gets no gradient
    m.tensor(at + "mask_token", {1, d.hidden}, ParameterKind::other);
    m.set_trains(true);
  }
  d.places =
      m.tensor(at + "position_embeddings", {1, d.positions, d.hidden}, ParameterKind::embedding);
  const std::string projection = at + "patch_embeddings.projection";
  d.kernel =
      m.tensor(projection + ".weight", {d.hidden, channels, patch, patch}, ParameterKind::linear);
  d.kernel_bias = m.tensor(projection + ".bias", {d.hidden}, ParameterKind::bias);
  d.products = checked_mul(d.hidden * channels, patch * patch);
}

void register_dino_layers(ModelBuilder& m, const ModelConfig& c, const std::string& prefix,
                          Dino& d) {
  const bool bias = c.flag("qkv_bias", true);
  const std::int64_t wide = checked_mul(d.hidden, c.count({"mlp_ratio"}, 4));
  const std::int64_t ffn = d.gated ? (wide * 2 / 3 + 7) / 8 * 8 : wide;
  m.begin_repeat(prefix + "encoder.layer", d.layers);
  d.before = m.layer_norm("norm1", d.hidden);
  d.q = m.linear("attention.attention.query", d.hidden, d.hidden, bias);
  d.k = m.linear("attention.attention.key", d.hidden, d.hidden, bias);
  d.v = m.linear("attention.attention.value", d.hidden, d.hidden, bias);
  d.out = m.linear("attention.output.dense", d.hidden, d.hidden, true);
  d.scale1 = m.tensor("layer_scale1.lambda1", {d.hidden}, ParameterKind::other);
  d.after = m.layer_norm("norm2", d.hidden);
  d.up = m.linear(d.gated ? "mlp.weights_in" : "mlp.fc1", d.hidden, d.gated ? 2 * ffn : ffn, true);
  d.down = m.linear(d.gated ? "mlp.weights_out" : "mlp.fc2", ffn, d.hidden, true);
  d.scale2 = m.tensor("layer_scale2.lambda1", {d.hidden}, ParameterKind::other);
  m.end_repeat();
}

ValueId parameter_of(Graph& g, const ModelBuilder& m, ParameterId id, Extent extent) {
  Op op{OpKind::parameter};
  op.module = m.owner(id);
  op.weight = id;
  return g.op(op, extent);
}

ValueId dino_embedding(Graph& g, const ModelBuilder& m, const Dino& d) {
  Op patches{OpKind::linear};
  patches.module = m.owner(d.kernel);
  patches.weight = d.kernel;
  patches.bias = d.kernel_bias;
  patches.work = {d.products, Scale::tokens};
  const ValueId rows = g.op(patches, {d.hidden, Scale::tokens});
  const ValueId token = parameter_of(g, m, d.token, {d.hidden, Scale::one});
  const ValueId joined = g.op({OpKind::cat, {token, rows, kNone}}, {d.hidden, Scale::tokens});
  return g.map(OpKind::add, joined, parameter_of(g, m, d.places, {d.hidden, Scale::sequence}));
}

ValueId dino_mlp(Graph& g, const Dino& d, ValueId x) {
  const ValueId inner = apply(g, d.up, x);
  if (!d.gated) return apply(g, d.down, activate(g, d.activation, inner));
  const ValueId gate = g.map(OpKind::silu, slice(g, inner, d.down.in));
  return apply(g, d.down, g.map(OpKind::mul, gate, slice(g, inner, d.down.in)));
}

ValueId dino_layer(Graph& g, const ModelBuilder& m, const Dino& d, ValueId x) {
  const AttentionShape shape{.heads = d.heads,
                             .kv_heads = d.heads,
                             .head_dim = d.hidden / d.heads,
                             .dropout = d.attention_dropout,
                             .causal = false,
                             .softmax_f32 = false};
  // A sublayer's result is scaled by a weight each, and dropped whole for some samples.
  const auto scaled = [&](ValueId y, ParameterId by) {
    const ValueId z = g.map(OpKind::mul, y, parameter_of(g, m, by, {d.hidden, Scale::one}));
    return d.drop_path > 0 ? g.map(OpKind::scalar, g.map(OpKind::scalar, z)) : z;
  };
  const ValueId n1 = layer_norm(g, d.before, x);
  const ValueId k = apply(g, d.k, n1), v = apply(g, d.v, n1), q = apply(g, d.q, n1);
  const ValueId mixed = attention(g, m.options().attention, shape, q, k, v);
  const ValueId out = dropout(g, apply(g, d.out, mixed), d.dropout);
  const ValueId middle = g.map(OpKind::add, scaled(out, d.scale1), x);
  const ValueId fed = dino_mlp(g, d, layer_norm(g, d.after, middle));
  return g.map(OpKind::add, scaled(fed, d.scale2), middle);
}

/// The class token and the mean of the patches' rows.
ValueId summary(Graph& g, ValueId x, std::int64_t hidden) {
  const Extent row{hidden, Scale::batch};
  const ValueId mean = g.op({OpKind::mean, {x, kNone, kNone}}, row);
  return g.op({OpKind::cat, {first_token(g, x), mean, kNone}}, {2 * hidden, Scale::batch});
}

}  // namespace

Model build_dinov2(const ModelConfig& c, const BuildOptions& options) {
  Dino d = read_dino(c);
  const bool classifier = classifies_images(c);
  const std::string prefix = classifier ? "dinov2." : "";
  ModelBuilder m(options);
  m.facts() = {.hidden = d.hidden,
               .layers = d.layers,
               .max_positions = d.positions,
               .attention_heads = d.heads,
               .key_value_heads = d.heads};
  m.facts().assumed.push_back(
      fmt::format("sequence_length counts patches and the class token: {} for images of "
                  "image_size",
                  d.positions));
  if (!classifier)
    m.facts().assumed.push_back("loss: the mean of the last hidden states, the class has none");
  register_dino_embedding(m, c, prefix, d);
  register_dino_layers(m, c, prefix, d);
  d.last = m.layer_norm(prefix + "layernorm", d.hidden);
  LinearModule head;
  if (classifier) {
    const std::int64_t named = c.entries("id2label");
    head =
        m.linear("classifier", 2 * d.hidden, c.count({"num_labels"}, named > 0 ? named : 2), true);
  }

  Graph& e = m.begin_segment("embedding");
  e.set_output(dropout(e, dino_embedding(e, m, d), d.dropout));
  Graph& g = m.begin_segment("layers", d.layers, true);
  g.set_output(dino_layer(g, m, d, g.chained_input({d.hidden, Scale::tokens})));
  Graph& h = m.begin_segment("head");
  const ValueId last = layer_norm(h, d.last, h.chained_input({d.hidden, Scale::tokens}));
  h.set_output(classifier ? cross_entropy(h, apply(h, head, summary(h, last, d.hidden)))
                          : mean_loss(h, last));
  return m.build();
}

}  // namespace shardplan
