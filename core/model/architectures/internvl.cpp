// InternVL 3 as transformers has it (models/internvl): a vision transformer with scaled layers, a
// projector over joined patches, any text model.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/images.h"
#include "model/architectures/towers.h"
#include "model/layers/attention.h"
#include "model/layers/norms.h"

namespace shardplan {
namespace {

struct InternTower {
  ParameterId token = kNone, places = kNone, kernel = kNone, kernel_bias = kNone;
  ParameterId scale1 = kNone, scale2 = kNone;
  LinearModule q, k, v, out, up, down;
  std::optional<NormModule> q_norm, k_norm;
  NormModule before, after;
  std::optional<NormModule> last;
  NormKind norm = NormKind::layer;
  Activation activation = Activation::gelu;
  std::int64_t width = 0, heads = 0, layers = 0;
  std::int64_t patches = 0, values = 0;  ///< of a piece
  double dropout = 0, attention_dropout = 0, projection_dropout = 0;
};

struct InternProjector {
  NormModule norm;
  LinearModule first, second;
  Activation activation = Activation::gelu;
};

void register_intern_layers(ModelBuilder& m, const ModelConfig& v, InternTower& t) {
  const std::int64_t ffn = v.count({"intermediate_size"}, 4096);
  const bool bias = v.flag("attention_bias", false);
  m.begin_repeat("model.vision_tower.encoder.layer", t.layers);
  t.scale1 = m.tensor("lambda_1", {t.width}, ParameterKind::other);
  t.scale2 = m.tensor("lambda_2", {t.width}, ParameterKind::other);
  t.q = m.linear("attention.q_proj", t.width, t.width, bias);
  t.k = m.linear("attention.k_proj", t.width, t.width, bias);
  t.v = m.linear("attention.v_proj", t.width, t.width, bias);
  t.out = m.linear("attention.projection_layer", t.width, t.width, true);
  if (v.flag("use_qk_norm", false)) {
    t.q_norm = m.rms_norm("attention.q_norm", t.width);
    t.k_norm = m.rms_norm("attention.k_norm", t.width);
  }
  t.up = m.linear("mlp.fc1", t.width, ffn, true);
  t.down = m.linear("mlp.fc2", ffn, t.width, true);
  t.before = register_norm(m, t.norm, "layernorm_before", t.width);
  t.after = register_norm(m, t.norm, "layernorm_after", t.width);
  m.end_repeat();
}

InternTower intern_tower(ModelBuilder& m, const ModelConfig& v) {
  InternTower t;
  t.width = v.count({"hidden_size"}, 1024);
  t.heads = v.count({"num_attention_heads"}, 16);
  t.layers = v.count({"num_hidden_layers"}, 24);
  t.patches = patches_of(v, 448, 14);
  t.norm = v.text("norm_type", "layer_norm") == "rms_norm" ? NormKind::rms : NormKind::layer;
  t.activation = read_activation(v, "hidden_act", "gelu");
  t.dropout = v.number("hidden_dropout_prob", 0.0);
  t.attention_dropout = v.number("attention_dropout", 0.0);
  t.projection_dropout = v.number("projection_dropout", 0.0);
  if (!m.options().counts_only)
    v.require_divisible("hidden_size", t.width, "num_attention_heads", t.heads);
  const std::string at = "model.vision_tower.embeddings.";
  t.token = m.tensor(at + "cls_token", {1, 1, t.width}, ParameterKind::other);
  const bool trains = m.trains();
  m.set_trains(trains && m.options().counts_only);  // nothing is masked
  if (v.flag("use_mask_token", false))
    m.tensor(at + "mask_token", {1, 1, t.width}, ParameterKind::other);
  m.set_trains(trains);
  if (v.flag("use_absolute_position_embeddings", true))
    t.places =
        m.tensor(at + "position_embeddings", {1, t.patches + 1, t.width}, ParameterKind::embedding);
  const std::int64_t patch = side_of(v, "patch_size", 14), channels = v.count({"num_channels"}, 3);
  const std::string projection = at + "patch_embeddings.projection";
  t.values = checked_mul(checked_mul(t.patches, channels), patch * patch);
  t.kernel =
      m.tensor(projection + ".weight", {t.width, channels, patch, patch}, ParameterKind::linear);
  t.kernel_bias = m.tensor(projection + ".bias", {t.width}, ParameterKind::bias);
  register_intern_layers(m, v, t);
  if (!v.flag("use_mean_pooling", true))
    t.last = m.layer_norm("model.vision_tower.layernorm", t.width);
  return t;
}

ValueId used(Graph& g, const ModelBuilder& m, ParameterId id, Extent extent) {
  Op op{OpKind::parameter};
  op.module = m.owner(id);
  op.weight = id;
  return g.op(op, extent);
}

ValueId intern_patches(Graph& g, const ModelBuilder& m, const InternTower& t) {
  Op patches{OpKind::linear, {g.op({OpKind::batch}, {t.values, Scale::images}), kNone, kNone}};
  patches.module = m.owner(t.kernel);
  patches.weight = t.kernel;
  patches.bias = t.kernel_bias;
  patches.work = {checked_mul(t.values, t.width), Scale::images};
  const ValueId rows = g.op(patches, {checked_mul(t.patches, t.width), Scale::images});
  const ValueId token = used(g, m, t.token, {t.width, Scale::one});
  const Extent all{t.width, Scale::patches};
  const ValueId joined = g.op({OpKind::cat, {token, rows, kNone}}, all);
  if (t.places == kNone) return joined;
  return g.map(OpKind::add, joined, used(g, m, t.places, {t.width, Scale::image_rows}));
}

ValueId intern_layer(Graph& g, const ModelBuilder& m, const InternTower& t, ValueId x) {
  const AttentionShape shape{.heads = t.heads,
                             .kv_heads = t.heads,
                             .head_dim = t.width / t.heads,
                             .queries = Scale::patches,
                             .keys = Scale::patches,
                             .dropout = t.attention_dropout,
                             .causal = false,
                             .softmax_f32 = false};
  const auto scaled = [&](ValueId y, ParameterId by) {
    return g.map(OpKind::mul, y, used(g, m, by, {t.width, Scale::one}));
  };
  const auto normal = [&](const std::optional<NormModule>& norm, ValueId y) {
    return norm ? normalize(g, NormKind::rms, *norm, y) : y;
  };
  const ValueId n1 = normalize(g, t.norm, t.before, x);
  const ValueId q = apply(g, t.q, n1), k = apply(g, t.k, n1), v = apply(g, t.v, n1);
  const ValueId mixed =
      attention(g, m.options().attention, shape, normal(t.q_norm, q), normal(t.k_norm, k), v);
  const ValueId out = dropout(g, apply(g, t.out, mixed), t.projection_dropout);
  const ValueId middle = g.map(OpKind::add, scaled(out, t.scale1), x);
  const ValueId inner =
      activate(g, t.activation, apply(g, t.up, normalize(g, t.norm, t.after, middle)));
  const ValueId fed = dropout(g, apply(g, t.down, inner), t.dropout);
  return g.map(OpKind::add, scaled(fed, t.scale2), middle);
}

void write_intern_tower(ModelBuilder& m, const InternTower& t) {
  Graph& e = m.begin_segment("tower embedding");
  e.set_output(dropout(e, intern_patches(e, m, t), t.dropout));
  Graph& g = m.begin_segment("tower layers", t.layers, true);
  g.set_output(intern_layer(g, m, t, g.chained_input({t.width, Scale::patches})));
}

/// Patches without the class's row, joined to tokens (pixel_shuffle: two copies), and projected.
void write_intern_projector(ModelBuilder& m, const InternTower& t, const InternProjector& p) {
  Graph& g = m.begin_segment("projector");
  ValueId x = g.chained_input({t.width, Scale::patches});
  if (t.last) x = layer_norm(g, *t.last, x);
  const ValueId taken = g.view(x, {checked_mul(t.patches, t.width), Scale::images});
  const ValueId joined = g.map(OpKind::copy, g.map(OpKind::copy, taken));
  const ValueId inner = activate(g, p.activation, apply(g, p.first, layer_norm(g, p.norm, joined)));
  g.set_output(apply(g, p.second, inner));
}

void check_described(const ModelConfig& c) {
  if (c.is_list("vision_feature_layer") || c.number("vision_feature_layer", -1) != -1)
    c.fail("vision_feature_layer", "can be counted but not estimated", "-1");
  if (c.text("vision_feature_select_strategy", "default") != "default")
    c.fail("vision_feature_select_strategy", "can be counted but not estimated", "default");
}

}  // namespace

Model build_internvl(const ModelConfig& c, const BuildOptions& options) {
  Model text = text_inside(c, options, "qwen2", c.flag("tie_word_embeddings", true));
  rename_prefix(text, "model.", "model.language_model.");
  const ModelConfig v = c.inner("vision_config");
  ModelBuilder m(tower_options(options));
  m.set_trains(tower_trains(options));
  const InternTower tower = intern_tower(m, v);
  const double ratio = c.number("downsample_ratio", 0.5);
  if (ratio <= 0 || ratio > 1) c.fail("downsample_ratio", "out of range", "more than 0, at most 1");
  const auto side = static_cast<std::int64_t>(1 / ratio);
  const std::int64_t joined_width = checked_mul(tower.width, side * side);
  m.set_trains(projector_trains(options));
  m.set_like_blocks(true);
  const std::string at = "model.multi_modal_projector.";
  InternProjector p;
  p.activation = read_activation(c, "projector_hidden_act", "gelu");
  p.norm = m.layer_norm(at + "layer_norm", joined_width);
  p.first = m.linear(at + "linear_1", joined_width, text.facts.hidden, true);
  p.second = m.linear(at + "linear_2", text.facts.hidden, text.facts.hidden, true);
  if (!reads_images(c, options, TowerCaller::mcore_bridge))
    return with_images(m.build(), std::move(text), {});
  check_described(c);
  c.require_divisible("vision_config.image_size", tower.patches, "downsample_ratio", side * side);
  write_intern_tower(m, tower);
  write_intern_projector(m, tower, p);
  // Twelve tiles at most and the whole as one more (image_processing_got_ocr2.py, max_patches).
  const std::int64_t each = tower.patches / (side * side);
  const ImagePieces image = pieces_of_image(c, options, text.facts, each, 13);
  return with_images(m.build(), std::move(text),
                     {.tokens = image.tokens,
                      .pieces = image.pieces,
                      .patches = tower.patches + 1,
                      .values = tower.values});
}

}  // namespace shardplan
