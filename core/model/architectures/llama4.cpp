// Llama 4 (models/llama4): a tower of tiles of one size, whose positions are complex numbers, in
// front of the text model.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/images.h"
#include "model/architectures/towers.h"
#include "model/layers/rotary.h"

namespace shardplan {
namespace {

struct Llama4Tower {
  ParameterId class_token = kNone, places = kNone;
  LinearModule patches, q, k, v, out, up, down, adapter_up, adapter_down, projector;
  NormModule first, last, before, after;
  std::int64_t width = 0, heads = 0, layers = 0;
  std::int64_t patch_count = 0;         ///< of a tile
  std::int64_t joined = 0, tokens = 0;  ///< patches of a token; tokens of a tile
  double dropout = 0, adapter_dropout = 0;
};

/// Patches whose columns a token joins: 1 / pixel_shuffle_ratio^2.
std::int64_t joined_patches(const ModelConfig& v) {
  const double ratio = v.number("pixel_shuffle_ratio", 0.5);
  const auto side = static_cast<std::int64_t>(ratio > 0 ? 1 / ratio + 0.5 : 0);
  if (side < 1 || static_cast<double>(side) * ratio != 1)
    v.fail("pixel_shuffle_ratio", "not one over a whole number", "0.5, or one over another number");
  return side * side;
}

Llama4Tower declare_tower(ModelBuilder& m, const ModelConfig& v) {
  Llama4Tower t;
  t.width = v.count({"hidden_size"}, 768);
  t.heads = v.count({"num_attention_heads"}, 16);
  t.layers = v.count({"num_hidden_layers"}, 34);
  t.patch_count = patches_of(v, 448, 14);
  t.joined = joined_patches(v);
  t.tokens = t.patch_count / t.joined;
  t.dropout = v.number("attention_dropout", 0.0);
  t.adapter_dropout = v.number("projector_dropout", 0.0);
  const std::int64_t ffn = v.count({"intermediate_size"}, 5632);
  const std::int64_t patch = side_of(v, "patch_size", 14);
  const std::int64_t out = v.count({"projector_output_dim"}, 4096);
  const std::string at = "vision_model.";
  t.class_token = m.tensor(at + "class_embedding", {t.width}, ParameterKind::other);
  t.places = m.tensor(at + "positional_embedding_vlm", {t.patch_count + 1, t.width},
                      ParameterKind::embedding);
  t.patches =
      m.linear(at + "patch_embedding.linear",
               checked_mul(v.count({"num_channels"}, 3), checked_mul(patch, patch)), t.width);
  t.first = m.layer_norm(at + "layernorm_pre", t.width);
  t.last = m.layer_norm(at + "layernorm_post", t.width);
  m.begin_repeat(at + "model.layers", t.layers);
  t.q = m.linear("self_attn.q_proj", t.width, t.width, true);
  t.k = m.linear("self_attn.k_proj", t.width, t.width, true);
  t.v = m.linear("self_attn.v_proj", t.width, t.width, true);
  t.out = m.linear("self_attn.o_proj", t.width, t.width, true);
  t.up = m.linear("mlp.fc1", t.width, ffn, true);
  t.down = m.linear("mlp.fc2", ffn, t.width, true);
  t.before = m.layer_norm("input_layernorm", t.width);
  t.after = m.layer_norm("post_attention_layernorm", t.width);
  m.end_repeat();
  t.adapter_up =
      m.linear(at + "vision_adapter.mlp.fc1", ffn, v.count({"projector_input_dim"}, 4096));
  t.adapter_down = m.linear(at + "vision_adapter.mlp.fc2", out, out);
  return t;
}

/// The class reads each of these numbers in one place and means the same by several.
void check_widths(const ModelConfig& v, const Llama4Tower& t) {
  v.require_divisible("hidden_size", t.width, "num_attention_heads", t.heads);
  if (t.patch_count % t.joined != 0 || t.width * t.joined != t.adapter_up.in)
    v.fail("intermediate_size", "is not the width of the patches of a token",
           "hidden_size / pixel_shuffle_ratio^2");
  if (t.adapter_up.out != t.adapter_down.in || t.adapter_down.out != t.projector.in)
    v.fail("projector_output_dim", "differs from the widths beside it",
           "projector_input_dim and vision_output_dim");
}

/// Patches of the tiles and the class's row behind them, with their places.
void write_patches(ModelBuilder& m, const Llama4Tower& t) {
  Graph& g = m.begin_segment("tower embedding");
  const Extent pixels{checked_mul(t.patch_count, t.patches.in), Scale::images};
  const ValueId unfolded = g.map(OpKind::copy, g.op({OpKind::batch}, pixels));
  const ValueId rows = apply(g, t.patches, unfolded);
  const ValueId token = parameter_value(g, m, t.class_token, t.width);
  const Extent all{t.width, Scale::patches};
  const ValueId whole = g.op({OpKind::cat, {rows, token, kNone}}, all);
  const ValueId places = parameter_value(g, m, t.places, (t.patch_count + 1) * t.width);
  g.set_output(layer_norm(g, t.first, g.map(OpKind::add, whole, places)));
}

void write_layers(ModelBuilder& m, const Llama4Tower& t) {
  Graph& g = m.begin_segment("tower layers", t.layers, true);
  const ValueId x = g.chained_input({t.width, Scale::patches});
  const AttentionShape shape{.heads = t.heads,
                             .kv_heads = t.heads,
                             .head_dim = t.width / t.heads,
                             .queries = Scale::patches,
                             .keys = Scale::patches,
                             .dropout = t.dropout,
                             .causal = false,
                             .softmax_f32 = false};
  const ValueId normal = layer_norm(g, t.before, x);
  ValueId q = apply(g, t.q, normal), k = apply(g, t.k, normal);
  const ValueId v = apply(g, t.v, normal);
  rotate_complex(g, q, k);
  const ValueId mixed = attention(g, m.options().attention, shape, q, k, v);
  const ValueId middle = g.map(OpKind::add, x, apply(g, t.out, mixed));
  const ValueId inner = g.map(OpKind::gelu, apply(g, t.up, layer_norm(g, t.after, middle)));
  g.set_output(g.map(OpKind::add, middle, apply(g, t.down, inner)));
}

/// Neighbouring patches of a tile joined to tokens, two linears, and the projector.
void write_tokens(ModelBuilder& m, const Llama4Tower& t) {
  Graph& g = m.begin_segment("tower adapter");
  const ValueId rows = layer_norm(g, t.last, g.chained_input({t.width, Scale::patches}));
  const ValueId tile = g.view(rows, {checked_mul(t.patch_count, t.width), Scale::images});
  const ValueId shuffled = g.map(OpKind::copy, g.map(OpKind::copy, tile));
  const ValueId inner = g.map(OpKind::gelu, apply(g, t.adapter_up, shuffled));
  const ValueId narrow = apply(g, t.adapter_down, dropout(g, inner, t.adapter_dropout));
  g.set_output(g.map(OpKind::gelu, narrow));
  Graph& p = m.begin_segment("projector");
  p.set_output(apply(p, t.projector,
                     p.chained_input({checked_mul(t.tokens, t.projector.in), Scale::images})));
}

}  // namespace

Model build_llama4(const ModelConfig& c, const BuildOptions& options) {
  Model text =
      text_inside(c, options, "llama4_text", c.flag("text_config.tie_word_embeddings", false));
  rename_prefix(text, "model.", "language_model.model.");
  rename_prefix(text, "lm_head.", "language_model.lm_head.");
  const ModelConfig v = c.inner("vision_config");
  ModelBuilder m(options);
  m.set_trains(tower_trains(options));
  m.set_like_blocks(true);
  Llama4Tower t = declare_tower(m, v);
  m.set_trains(projector_trains(options));
  t.projector = m.linear("multi_modal_projector.linear_1", v.count({"vision_output_dim"}, 7680),
                         text.facts.hidden);
  if (!reads_images(c, options)) return with_images(m.build(), std::move(text), {});
  check_widths(v, t);
  constexpr std::int64_t kTiles = 17;  // 16 of the processor's max_patches, and the whole
  const ImagePieces image = pieces_of_image(c, options, text.facts, t.tokens, kTiles);
  write_patches(m, t);
  write_layers(m, t);
  write_tokens(m, t);
  return with_images(m.build(), std::move(text),
                     {.tokens = image.tokens,
                      .pieces = image.pieces,
                      .patches = t.patch_count + 1,
                      .values = checked_mul(t.patch_count, t.patches.in)});
}

}  // namespace shardplan
