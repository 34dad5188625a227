#include "model/architectures/pixtral.h"

#include <algorithm>

#include "model/layers/attention.h"
#include "model/layers/rotary.h"

namespace shardplan {
namespace {

void register_pixtral_layers(ModelBuilder& m, PixtralTower& t, const std::string& list,
                             std::int64_t count, std::int64_t start, std::int64_t ffn) {
  m.begin_repeat(list, count, start);
  t.before = m.rms_norm("attention_norm", t.hidden);
  t.mlp = gated_mlp(m, "feed_forward", t.hidden, ffn);
  t.k = m.linear("attention.k_proj", t.hidden, t.hidden);
  t.v = m.linear("attention.v_proj", t.hidden, t.hidden);
  t.q = m.linear("attention.q_proj", t.hidden, t.hidden);
  t.out = m.linear("attention.o_proj", t.hidden, t.hidden);
  t.after = m.rms_norm("ffn_norm", t.hidden);
  m.end_repeat();
}

ValueId pixtral_patches(Graph& g, const ModelBuilder& m, const PixtralTower& t) {
  Op patches{OpKind::linear, {g.op({OpKind::batch}, {t.values, Scale::patches}), kNone, kNone}};
  patches.module = m.owner(t.kernel);
  patches.weight = t.kernel;
  patches.work = {checked_mul(t.values, t.hidden), Scale::patches};
  const ValueId rows = g.op(patches, {t.hidden, Scale::patches});
  return rms_norm(g, t.first, g.map(OpKind::copy, rows));  // torch.cat of the images
}

ValueId pixtral_layer(Graph& g, const PixtralTower& t, AttentionKind kind,
                      const RotaryTables& tables, std::int32_t mask, ValueId x) {
  AttentionShape shape{.heads = t.heads,
                       .kv_heads = t.heads,
                       .head_dim = t.hidden / t.heads,
                       .queries = Scale::patches,
                       .keys = Scale::patches,
                       .dropout = t.dropout,
                       .causal = false,
                       .one_by_one = true,
                       .one_sequence = true};
  const ValueId n1 = rms_norm(g, t.before, x);
  const Rotation turn = rotation(g, tables, Scale::patches);
  ValueId q = apply(g, t.q, n1), k = apply(g, t.k, n1);
  const ValueId v = apply(g, t.v, n1);
  rotate_both(g, turn, q, t.heads, k, t.heads, shape.head_dim);
  ValueId mixed = kNone;
  if (kind == AttentionKind::eager) {
    shape.mask = mask;
    mixed = attention(g, kind, shape, q, k, v);
  } else {
    mixed = masked_attention(g, shape, q, k, v, g.shared_input(mask, {1, Scale::patch_square}));
  }
  const ValueId middle = g.map(OpKind::add, x, apply(g, t.out, mixed));
  const ValueId fed = gated_mlp(g, t.mlp, t.activation, rms_norm(g, t.after, middle));
  return g.map(OpKind::add, middle, fed);
}

}  // namespace

TowerDefaults pixtral_defaults(const ModelConfig& v, const TowerDefaults& whole) {
  if (!v.has("model_type") && !v.has("hidden_size")) return whole;
  return {.hidden = 1024, .ffn = 4096, .layers = 24, .heads = 16, .image = 1024, .patch = 16};
}

PixtralTower pixtral_tower(ModelBuilder& m, const std::string& prefix, const ModelConfig& v,
                           const TowerDefaults& d, std::int64_t until) {
  PixtralTower t;
  t.hidden = v.count({"hidden_size"}, d.hidden);
  t.heads = v.count({"num_attention_heads"}, d.heads);
  if (!m.options().counts_only)
    v.require_divisible("hidden_size", t.hidden, "num_attention_heads", t.heads);
  t.activation = read_activation(v, "hidden_act", "gelu");
  t.dropout = v.number("attention_dropout", 0.0);
  const std::int64_t ffn = v.count({"intermediate_size"}, d.ffn);
  const std::int64_t layers = v.count({"num_hidden_layers"}, d.layers);
  const std::int64_t channels = v.count({"num_channels"}, 3),
                     patch = side_of(v, "patch_size", d.patch);
  t.values = checked_mul(channels, checked_mul(patch, patch));
  t.layers = std::min(until, layers);
  t.kernel = m.tensor(prefix + "patch_conv.weight", {t.hidden, channels, patch, patch},
                      ParameterKind::linear);
  t.first = m.rms_norm(prefix + "ln_pre", t.hidden);
  const std::string list = prefix + "transformer.layers";
  const bool trains = m.trains();
  if (t.layers < layers) {
    PixtralTower unread = t;
    register_pixtral_layers(m, t, list, t.layers, 0, ffn);
    m.set_trains(false);
    register_pixtral_layers(m, unread, list, layers - t.layers, t.layers, ffn);
    m.set_trains(trains);
  } else {
    register_pixtral_layers(m, t, list, layers, 0, ffn);
  }
  return t;
}

void write_pixtral(ModelBuilder& m, const PixtralTower& t) {
  Graph& e = m.begin_segment("tower embedding");
  e.set_output(pixtral_patches(e, m, t));
  const RotaryTables tables = share_rotary(m, t.hidden / t.heads, Scale::patches);
  // Whatever the attention: additive, and between the images as good as minus infinity.
  const std::int32_t mask = m.share("block mask", {1, Scale::patch_square});
  Graph& g = m.begin_segment("tower layers", t.layers, true);
  const ValueId x = g.chained_input({t.hidden, Scale::patches});
  g.set_output(pixtral_layer(g, t, m.options().attention, tables, mask, x));
}

std::int64_t most_patches(const ModelConfig& v, const TowerDefaults& d) {
  return std::max<std::int64_t>(1, patches_of(v, d.image, d.patch));
}

}  // namespace shardplan
