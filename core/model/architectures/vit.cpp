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
  const bool bias = c.flag("qkv_bias", true);
  const double hidden_dropout = c.number("hidden_dropout_prob", 0.0);
  const Activation activation = read_activation(c, "hidden_act", "gelu");
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
  const auto token =
      m.tensor(prefix + "embeddings.cls_token", {1, 1, hidden}, ParameterKind::other);
  const auto places = m.tensor(prefix + "embeddings.position_embeddings", {1, positions, hidden},
                               ParameterKind::embedding);
  const std::string projection = prefix + "embeddings.patch_embeddings.projection";
  const auto kernel = m.tensor(
      projection + ".weight", {hidden, channels, patch.first, patch.second}, ParameterKind::linear);
  const auto kernel_bias = m.tensor(projection + ".bias", {hidden}, ParameterKind::bias);
  m.begin_repeat(prefix + "layers", layers);
  const auto q_proj = m.linear("attention.q_proj", hidden, hidden, bias);
  const auto k_proj = m.linear("attention.k_proj", hidden, hidden, bias);
  const auto v_proj = m.linear("attention.v_proj", hidden, hidden, bias);
  const auto o_proj = m.linear("attention.o_proj", hidden, hidden, true);
  const auto before = m.layer_norm("layernorm_before", hidden);
  const auto after = m.layer_norm("layernorm_after", hidden);
  const auto up = m.linear("mlp.fc1", hidden, ffn, true);
  const auto down = m.linear("mlp.fc2", ffn, hidden, true);
  m.end_repeat();
  const auto norm = m.layer_norm(prefix + "layernorm", hidden);
  LinearModule head;
  if (classifier) {
    const std::int64_t named = c.entries("id2label");
    head = m.linear("classifier", hidden, c.count({"num_labels"}, named > 0 ? named : 2), true);
  } else {
    head = m.linear("pooler.dense", hidden, c.count({"pooler_output_size"}, hidden), true);
    m.facts().assumed.push_back("loss: the mean of the pooled output, the class has none");
  }

  Graph& e = m.begin_segment("embedding");
  // A strided convolution over the batch's pixels is one product a patch.
  Op patches{OpKind::linear};
  patches.module = m.owner(kernel);
  patches.weight = kernel;
  patches.bias = kernel_bias;
  patches.work = {checked_mul(hidden * channels, patch.first * patch.second), Scale::tokens};
  const ValueId rows = e.op(patches, {hidden, Scale::tokens});
  Op first{OpKind::parameter};
  first.module = m.owner(token);
  first.weight = token;
  const ValueId cls = e.op(first, {hidden, Scale::one});
  const ValueId joined = e.op({OpKind::cat, {cls, rows, kNone}}, {hidden, Scale::tokens});
  first.weight = places;
  const ValueId table = e.op(first, {hidden, Scale::sequence});
  e.set_output(dropout(e, e.map(OpKind::add, joined, table), hidden_dropout));

  Graph& g = m.begin_segment("layers", layers, true);
  const ValueId x = g.chained_input({hidden, Scale::tokens});
  const ValueId n1 = layer_norm(g, before, x);
  const ValueId q = apply(g, q_proj, n1);
  const ValueId k = apply(g, k_proj, n1);
  const ValueId v = apply(g, v_proj, n1);
  const AttentionShape shape{.heads = heads,
                             .kv_heads = heads,
                             .head_dim = hidden / heads,
                             .dropout = c.number("attention_probs_dropout_prob", 0.0),
                             .causal = false};
  const ValueId mixed = apply(g, o_proj, attention(g, options.attention, shape, q, k, v));
  const ValueId middle = g.map(OpKind::add, dropout(g, mixed, hidden_dropout), x);
  const ValueId inner = activate(g, activation, apply(g, up, layer_norm(g, after, middle)));
  const ValueId delta = dropout(g, apply(g, down, inner), hidden_dropout);
  g.set_output(g.map(OpKind::add, delta, middle));

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
