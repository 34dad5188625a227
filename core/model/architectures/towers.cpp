#include "model/architectures/towers.h"

#include "model/layers/attention.h"

#include <algorithm>

namespace shardplan {
namespace {

struct TowerShape {
  std::int64_t hidden, ffn, layers, channels, patch, patches;
};

/// A convolution over patches: name.weight [out, channels, side, side] (and name.bias).
ParameterId patch_kernel(ModelBuilder& m, const std::string& name, const TowerShape& s) {
  return m.tensor(name + ".weight", {s.hidden, s.channels, s.patch, s.patch},
                  ParameterKind::linear);
}

/// What CLIP and SigLIP have in common, but for modules.
Tower tower_of(const ModelBuilder& m, const ModelConfig& v, const TowerShape& s,
               const TowerDefaults& d, std::string_view activation) {
  Tower t;
  t.hidden = s.hidden;
  t.heads = v.count({"num_attention_heads"}, d.heads);
  if (!m.options().counts_only)
    v.require_divisible("hidden_size", s.hidden, "num_attention_heads", t.heads);
  t.patches = s.patches;
  t.values = checked_mul(checked_mul(s.patches, s.channels), s.patch * s.patch);
  t.dropout = v.number("attention_dropout", 0.0);
  t.activation = read_activation(v, "hidden_act", activation);
  return t;
}

TowerShape read_tower(const ModelConfig& v, const TowerDefaults& d) {
  TowerShape s{};
  s.hidden = v.count({"hidden_size"}, d.hidden);
  s.ffn = v.count({"intermediate_size"}, d.ffn);
  s.layers = v.count({"num_hidden_layers"}, d.layers);
  s.channels = v.count({"num_channels"}, 3);
  s.patch = side_of(v, "patch_size", d.patch);
  s.patches = patches_of(v, d.image, d.patch);
  return s;
}

/// SiglipMultiheadAttentionPoolingHead.
PoolingHead pooling_head(ModelBuilder& m, const std::string& prefix, const TowerShape& s) {
  PoolingHead h;
  h.probe = m.tensor(prefix + "probe", {1, 1, s.hidden}, ParameterKind::other);
  h.joined = m.tensor(prefix + "attention.in_proj_weight", {3 * s.hidden, s.hidden},
                      ParameterKind::linear);
  h.joined_bias = m.tensor(prefix + "attention.in_proj_bias", {3 * s.hidden}, ParameterKind::bias);
  h.out = m.linear(prefix + "attention.out_proj", s.hidden, s.hidden, true);
  h.norm = m.layer_norm(prefix + "layernorm", s.hidden);
  h.up = m.linear(prefix + "mlp.fc1", s.hidden, s.ffn, true);
  h.down = m.linear(prefix + "mlp.fc2", s.ffn, s.hidden, true);
  return h;
}

}  // namespace

std::int64_t side_of(const ModelConfig& v, std::string_view key, std::int64_t fallback) {
  if (!v.is_list(key)) return v.count({key}, fallback);
  const std::vector<std::int64_t> sides = v.counts(key);
  if (sides.empty() || sides.front() < 1)
    v.fail(key, "not a height and a width", "a positive number or two of them");
  return sides.front();
}

std::int64_t patches_of(const ModelConfig& v, std::int64_t image, std::int64_t patch) {
  const auto last = [&](std::string_view key, std::int64_t fallback) {
    const std::vector<std::int64_t> list =
        v.is_list(key) ? v.counts(key) : std::vector<std::int64_t>{};
    return list.size() == 2 && list[1] > 0 ? list[1] : side_of(v, key, fallback);
  };
  return checked_mul(side_of(v, "image_size", image) / side_of(v, "patch_size", patch),
                     last("image_size", image) / last("patch_size", patch));
}

PairLayer pair_layers(ModelBuilder& m, const std::string& list, std::int64_t layers,
                      std::int64_t hidden, std::int64_t ffn, PairOrder order, std::int64_t start) {
  PairLayer l;
  const bool norms_first = order == PairOrder::siglip;
  m.begin_repeat(list, layers, start);
  if (norms_first) l.before = m.layer_norm("layer_norm1", hidden);
  l.k = m.linear("self_attn.k_proj", hidden, hidden, true);
  l.v = m.linear("self_attn.v_proj", hidden, hidden, true);
  l.q = m.linear("self_attn.q_proj", hidden, hidden, true);
  l.out = m.linear("self_attn.out_proj", hidden, hidden, true);
  if (!norms_first) l.before = m.layer_norm("layer_norm1", hidden);
  if (norms_first) l.after = m.layer_norm("layer_norm2", hidden);
  l.up = m.linear("mlp.fc1", hidden, ffn, true);
  l.down = m.linear("mlp.fc2", ffn, hidden, true);
  if (!norms_first) l.after = m.layer_norm("layer_norm2", hidden);
  m.end_repeat();
  return l;
}

namespace {

/// The layers, and the norm behind them.
void register_layers(ModelBuilder& m, Tower& t, const std::string& prefix, const TowerShape& s,
                     const TowerUse& use, PairOrder order) {
  const bool trains = m.trains();
  const std::string list = prefix + "encoder.layers";
  t.layers = std::min(use.layers, s.layers);
  t.layer = pair_layers(m, list, t.layers, s.hidden, s.ffn, order);
  m.set_trains(trains && t.layers == s.layers);
  if (t.layers < s.layers)
    pair_layers(m, list, s.layers - t.layers, s.hidden, s.ffn, order, t.layers);
  m.set_trains(trains && use.norm);
  t.after = m.layer_norm(prefix + "post_layernorm", s.hidden);
  m.set_trains(trains);
}

}  // namespace

Tower clip_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& v,
                 const TowerDefaults& defaults, const TowerUse& use) {
  const TowerShape s = read_tower(v, defaults);
  Tower t = tower_of(m, v, s, defaults, "quick_gelu");
  t.class_token = m.tensor(prefix + "embeddings.class_embedding", {s.hidden}, ParameterKind::other);
  t.kernel = patch_kernel(m, prefix + "embeddings.patch_embedding", s);
  t.places = m.embedding(prefix + "embeddings.position_embedding", s.patches + 1, s.hidden);
  t.before = m.layer_norm(prefix + "pre_layrnorm", s.hidden);
  register_layers(m, t, prefix, s, use, PairOrder::clip);
  return t;
}

Tower siglip_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& v,
                   const TowerDefaults& defaults, const TowerUse& use) {
  const TowerShape s = read_tower(v, defaults);
  Tower t = tower_of(m, v, s, defaults, "gelu_pytorch_tanh");
  const std::string patches = prefix + "embeddings.patch_embedding";
  t.kernel = patch_kernel(m, patches, s);
  t.kernel_bias = m.tensor(patches + ".bias", {s.hidden}, ParameterKind::bias);
  t.places = m.embedding(prefix + "embeddings.position_embedding", s.patches, s.hidden);
  register_layers(m, t, prefix, s, use, PairOrder::siglip);
  const bool trains = m.trains();
  m.set_trains(trains && (use.head || m.options().counts_only));
  if (v.flag("vision_use_head", defaults.pooling_head))
    t.head = pooling_head(m, prefix + "head.", s);
  m.set_trains(trains);
  return t;
}

Tower idefics_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& v,
                    const TowerDefaults& defaults) {
  const TowerShape s = read_tower(v, defaults);
  Tower t = tower_of(m, v, s, defaults, "gelu_pytorch_tanh");
  const std::string patches = prefix + "embeddings.patch_embedding";
  t.kernel = patch_kernel(m, patches, s);
  t.kernel_bias = m.tensor(patches + ".bias", {s.hidden}, ParameterKind::bias);
  t.places = m.embedding(prefix + "embeddings.position_embedding", s.patches, s.hidden);
  t.own_places = t.copies_pixels = true;
  register_layers(m, t, prefix, s, {}, PairOrder::clip);
  return t;
}

Tower named_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& v,
                  std::string_view type, const TowerDefaults& defaults, const TowerUse& use) {
  const std::string named = v.text("model_type", type);
  if (named == "clip_vision_model") return clip_tower(m, prefix, v, defaults, use);
  if (named == "siglip_vision_model") return siglip_tower(m, prefix, v, defaults, use);
  v.fail("model_type", "the vision tower '" + named + "' cannot be counted",
         "clip_vision_model, siglip_vision_model or pixtral");
}

namespace {

/// Patches of the batch's images, and the class's row before them, with their places.
ValueId embed_patches(Graph& g, const ModelBuilder& m, const Tower& t) {
  ValueId pixels = g.op({OpKind::batch}, {t.values, Scale::images});
  if (t.copies_pixels) pixels = g.map(OpKind::copy, pixels);
  Op patches{OpKind::linear, {pixels, kNone, kNone}};
  patches.module = m.owner(t.kernel);
  patches.weight = t.kernel;
  patches.bias = t.kernel_bias;
  patches.work = {checked_mul(t.values, t.hidden), Scale::images};
  ValueId rows = g.op(patches, {checked_mul(t.patches, t.hidden), Scale::images});
  const Extent all{t.hidden, Scale::patches};
  if (t.class_token == kNone) {
    rows = g.view(rows, all);
  } else {
    Op first{OpKind::parameter};
    first.module = m.owner(t.class_token);
    first.weight = t.class_token;
    const ValueId token = g.op(first, {t.hidden, Scale::one});
    rows = g.op({OpKind::cat, {token, rows, kNone}}, all);
  }
  if (!t.own_places) return g.map(OpKind::add, rows, apply(g, t.places, Scale::image_rows));
  Op places{OpKind::embedding};
  places.module = t.places.module;
  places.weight = t.places.weight;
  places.side = {1, Scale::patches};
  return g.map(OpKind::add, rows, g.op(places, all));
}

ValueId tower_layer(Graph& g, const Tower& t, AttentionKind kind, ValueId x) {
  const AttentionShape shape{.heads = t.heads,
                             .kv_heads = t.heads,
                             .head_dim = t.hidden / t.heads,
                             .queries = Scale::patches,
                             .keys = Scale::patches,
                             .dropout = t.dropout,
                             .causal = false};
  return apply(g, t.layer, shape, kind, t.activation, x);
}

}  // namespace

ValueId apply(Graph& g, const PairLayer& l, const AttentionShape& shape, AttentionKind kind,
              Activation activation, ValueId x) {
  const ValueId n1 = layer_norm(g, l.before, x);
  const ValueId q = apply(g, l.q, n1), k = apply(g, l.k, n1), v = apply(g, l.v, n1);
  const ValueId middle = g.map(OpKind::add, x, apply(g, l.out, attention(g, kind, shape, q, k, v)));
  const ValueId inner = activate(g, activation, apply(g, l.up, layer_norm(g, l.after, middle)));
  return g.map(OpKind::add, middle, apply(g, l.down, inner));
}

ValueId pooled(Graph& g, const ModelBuilder& m, const Tower& t, ValueId rows) {
  const PoolingHead& head = *t.head;
  const Extent one{t.hidden, Scale::images}, all{t.hidden, Scale::patches};
  const auto projected = [&](ValueId x, std::int64_t parts) {
    const Extent in = g.value(x).extent;
    Op op{OpKind::linear, {x, kNone, kNone}};
    op.module = m.owner(head.joined);
    op.weight = head.joined;
    op.bias = head.joined_bias;
    op.work = {checked_mul(in.per, parts * t.hidden), in.scale};
    return g.op(op, {parts * t.hidden, in.scale});
  };
  const ValueId probe = parameter_value(g, m, head.probe, t.hidden);
  const ValueId q = projected(g.op({OpKind::copy, {probe, kNone, kNone}}, one), 1);
  // Rows first, images second: a product reads several images from a copy. Keys and values are
  // made at once and taken apart by another.
  const ValueId turned = g.op({OpKind::fold_heads, {rows, kNone, kNone}}, all);
  const ValueId apart = g.map(OpKind::copy, projected(turned, 2));
  Op scores{OpKind::matmul, {g.map(OpKind::scalar, q), g.view(apart, all), kNone}};
  scores.work = all;
  const ValueId chances = g.map(OpKind::softmax, g.op(scores, {t.heads, Scale::patches}));
  Op mix{OpKind::matmul, {chances, g.view(apart, all), kNone}};
  mix.work = all;
  const ValueId seen = apply(g, head.out, g.op(mix, one));
  const ValueId inner =
      activate(g, t.activation, apply(g, head.up, layer_norm(g, head.norm, seen)));
  return g.map(OpKind::add, seen, apply(g, head.down, inner));
}

void write_tower(ModelBuilder& m, const Tower& t) {
  Graph& e = m.begin_segment("tower embedding");
  const ValueId rows = embed_patches(e, m, t);
  e.set_output(t.before ? layer_norm(e, *t.before, rows) : rows);
  Graph& g = m.begin_segment("tower layers", t.layers, true);
  g.set_output(
      tower_layer(g, t, m.options().attention, g.chained_input({t.hidden, Scale::patches})));
}

void write_tower_norm(ModelBuilder& m, const Tower& t) {
  Graph& g = m.begin_segment("tower norm");
  g.set_output(layer_norm(g, *t.after, g.chained_input({t.hidden, Scale::patches})));
}

}  // namespace shardplan
