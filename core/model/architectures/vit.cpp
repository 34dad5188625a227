// ViT (models/vit): ViTModel with its pooler, or ViTForImageClassification when "architectures",
// num_labels or id2label say so. sequence_length counts patches and the class token.
#include "model/architectures/architectures.h"
#include "model/layers/attention.h"
#include "model/layers/heads.h"
#include "model/layers/mlp.h"

#include <fmt/format.h>

namespace shardplan {
namespace {

/// One number for both sides, or [height, width].
std::pair<std::int64_t, std::int64_t> sides(const ModelConfig& c, std::string_view key,
                                            std::int64_t fallback) {
  if (!c.is_list(key)) {
    const std::int64_t side = c.count({key}, fallback);
    return {side, side};
  }
  const std::vector<std::int64_t> list = c.counts(key);
  if (list.size() != 2 || list[0] < 1 || list[1] < 1)
    c.fail(key, "not a height and a width", "a positive number or two of them");
  return {list[0], list[1]};
}

bool classifies(const ModelConfig& c) {
  const std::vector<std::string> named = c.texts("architectures");
  if (named.empty()) return c.has("num_labels") || c.has("id2label") || c.entries("id2label") > 0;
  if (named.front() == "ViTForImageClassification") return true;
  if (named.front() == "ViTModel") return false;
  c.fail("architectures", "unsupported class '" + named.front() + "'",
         "ViTModel or ViTForImageClassification");
}

/// Patches, the class token and learned places.
struct VitEmbedding {
  ParameterId token = kNone, places = kNone, kernel = kNone, kernel_bias = kNone;
  std::int64_t products = 0;  ///< multiply-adds of one patch
};

VitEmbedding register_vit_embedding(ModelBuilder& m, const std::string& prefix,
                                    std::int64_t positions, std::int64_t hidden,
                                    std::int64_t channels,
                                    std::pair<std::int64_t, std::int64_t> patch) {
  VitEmbedding v;
  v.token = m.tensor(prefix + "embeddings.cls_token", {1, 1, hidden}, ParameterKind::other);
  v.places = m.tensor(prefix + "embeddings.position_embeddings", {1, positions, hidden},
                      ParameterKind::embedding);
  const std::string projection = prefix + "embeddings.patch_embeddings.projection";
  v.kernel = m.tensor(projection + ".weight", {hidden, channels, patch.first, patch.second},
                      ParameterKind::linear);
  v.kernel_bias = m.tensor(projection + ".bias", {hidden}, ParameterKind::bias);
  v.products = checked_mul(hidden * channels, patch.first * patch.second);
  return v;
}

ValueId vit_embedding(Graph& g, const ModelBuilder& m, const VitEmbedding& v, std::int64_t hidden) {
  // A strided convolution over the batch's pixels is one product a patch.
  Op patches{OpKind::linear};
  patches.module = m.owner(v.kernel);
  patches.weight = v.kernel;
  patches.bias = v.kernel_bias;
  patches.work = {v.products, Scale::tokens};
  const ValueId rows = g.op(patches, {hidden, Scale::tokens});
  Op first{OpKind::parameter};
  first.module = m.owner(v.token);
  first.weight = v.token;
  const ValueId cls = g.op(first, {hidden, Scale::one});
  const ValueId joined = g.op({OpKind::cat, {cls, rows, kNone}}, {hidden, Scale::tokens});
  first.weight = v.places;
  const ValueId table = g.op(first, {hidden, Scale::sequence});
  return g.map(OpKind::add, joined, table);
}

struct VitLayer {
  LinearModule q_proj, k_proj, v_proj, o_proj, up, down;
  NormModule before, after;
  AttentionShape shape;
  AttentionKind kind{};
  Activation activation{};
  double dropout = 0;
};

VitLayer register_vit_layers(ModelBuilder& m, const std::string& name, std::int64_t layers,
                             std::int64_t hidden, std::int64_t ffn, bool bias) {
  VitLayer l;
  m.begin_repeat(name, layers);
  l.q_proj = m.linear("attention.q_proj", hidden, hidden, bias);
  l.k_proj = m.linear("attention.k_proj", hidden, hidden, bias);
  l.v_proj = m.linear("attention.v_proj", hidden, hidden, bias);
  l.o_proj = m.linear("attention.o_proj", hidden, hidden, true);
  l.before = m.layer_norm("layernorm_before", hidden);
  l.after = m.layer_norm("layernorm_after", hidden);
  l.up = m.linear("mlp.fc1", hidden, ffn, true);
  l.down = m.linear("mlp.fc2", ffn, hidden, true);
  m.end_repeat();
  return l;
}

ValueId vit_layer(Graph& g, const VitLayer& l, ValueId x) {
  const ValueId n1 = layer_norm(g, l.before, x);
  const ValueId q = apply(g, l.q_proj, n1);
  const ValueId k = apply(g, l.k_proj, n1);
  const ValueId v = apply(g, l.v_proj, n1);
  const ValueId mixed = apply(g, l.o_proj, attention(g, l.kind, l.shape, q, k, v));
  const ValueId middle = g.map(OpKind::add, dropout(g, mixed, l.dropout), x);
  const ValueId inner = activate(g, l.activation, apply(g, l.up, layer_norm(g, l.after, middle)));
  const ValueId delta = dropout(g, apply(g, l.down, inner), l.dropout);
  return g.map(OpKind::add, delta, middle);
}

/// A classifier, or the model's own pooler, whose class has no loss.
LinearModule register_vit_head(ModelBuilder& m, const ModelConfig& c, bool classifier,
                               std::int64_t hidden) {
  if (classifier) {
    const std::int64_t named = c.entries("id2label");
    return m.linear("classifier", hidden, c.count({"num_labels"}, named > 0 ? named : 2), true);
  }
  m.facts().assumed.push_back("loss: the mean of the pooled output, the class has none");
  return m.linear("pooler.dense", hidden, c.count({"pooler_output_size"}, hidden), true);
}

}  // namespace

Model build_vit(const ModelConfig& c, const BuildOptions& options) {
  const std::int64_t hidden = c.count({"hidden_size"}, 768);
  const std::int64_t ffn = c.count({"intermediate_size"}, 3072);
  const std::int64_t layers = c.count({"num_hidden_layers"}, 12);
  const std::int64_t heads = c.count({"num_attention_heads"}, 12);
  const std::int64_t channels = c.count({"num_channels"}, 3);
  const auto image = sides(c, "image_size", 224);
  const auto patch = sides(c, "patch_size", 16);
  const std::int64_t positions =
      1 + checked_mul(image.first / patch.first, image.second / patch.second);
  const bool classifier = classifies(c);
  c.require_divisible("hidden_size", hidden, "num_attention_heads", heads);

  ModelBuilder m(options);
  m.facts() = {.hidden = hidden,
               .layers = layers,
               .max_positions = positions,
               .attention_heads = heads,
               .key_value_heads = heads};
  m.facts().assumed.push_back(
      fmt::format("sequence_length counts patches and the class token: {} for {}x{} images",
                  positions, image.first, image.second));
  const std::string prefix = classifier ? "vit." : "";
  const VitEmbedding embedding =
      register_vit_embedding(m, prefix, positions, hidden, channels, patch);
  VitLayer l =
      register_vit_layers(m, prefix + "layers", layers, hidden, ffn, c.flag("qkv_bias", true));
  const auto norm = m.layer_norm(prefix + "layernorm", hidden);
  const LinearModule head = register_vit_head(m, c, classifier, hidden);

  Graph& e = m.begin_segment("embedding");
  l.dropout = c.number("hidden_dropout_prob", 0.0);
  e.set_output(dropout(e, vit_embedding(e, m, embedding, hidden), l.dropout));

  l.shape = {.heads = heads,
             .kv_heads = heads,
             .head_dim = hidden / heads,
             .dropout = c.number("attention_probs_dropout_prob", 0.0),
             .causal = false};
  l.kind = options.attention;
  l.activation = read_activation(c, "hidden_act", "gelu");
  Graph& g = m.begin_segment("layers", layers, true);
  g.set_output(vit_layer(g, l, g.chained_input({hidden, Scale::tokens})));

  Graph& h = m.begin_segment("head");
  const ValueId last = layer_norm(h, norm, h.chained_input({hidden, Scale::tokens}));
  const ValueId out = apply(h, head, first_token(h, last));
  if (classifier) {
    h.set_output(cross_entropy(h, out));
  } else {
    h.set_output(mean_loss(h, h.map(OpKind::tanh, out)));
  }
  return m.build();
}

}  // namespace shardplan
