// Qwen 2-VL, 2.5-VL, 3-VL and 3.5 (models/qwen2_vl, qwen2_5_vl, qwen3_vl, qwen3_vl_moe, qwen3_5,
// qwen3_5_moe): a vision tower of their own in front of the text models of the generation.
#include "model/architectures/architectures.h"
#include "model/architectures/counted.h"
#include "model/architectures/decoder.h"
#include "model/architectures/images.h"
#include "model/layers/attention.h"
#include "model/layers/mlp.h"
#include "model/layers/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace shardplan {
namespace {

/// Layers in a row that attend alike.
struct QwenLayers {
  NormModule norm1, norm2;
  LinearModule qkv, out, up, down;
  std::optional<GatedMlp> gated;
  std::int64_t count = 0;
  bool whole = true;  ///< they see whole images
};

/// A norm and two linears over the joined rows of a token.
struct QwenMerger {
  NormModule norm;
  LinearModule first, second;
  bool joined_norm = false;  ///< the norm is over the joined rows too
};

/// A tower of images of any size: patches, layers that attend within an image, or within windows
/// of it, and a merger that joins neighbouring patches to a token.
struct QwenTower {
  ParameterId kernel = kNone, kernel_bias = kNone;
  std::optional<EmbeddingModule> places;
  std::vector<QwenLayers> layers;
  QwenMerger merger;
  std::vector<QwenMerger> deep;  ///< of deeper layers (3-VL)
  std::int64_t width = 0, heads = 0, depth = 0;
  std::int64_t merge = 2, patch = 14, values = 0;  ///< values: of a patch
  std::int64_t window = 0;                         ///< side of a window in pixels; 0: none
  std::vector<std::int64_t> whole;  ///< layers that see whole images, if others do not
  Activation activation = Activation::gelu;
  bool rms = false;

  std::int64_t joined() const { return merge * merge; }  ///< patches of a token
  std::int64_t merged() const { return checked_mul(width, joined()); }
  /// Patches of a window: as many tokens as fit into it (get_window_index).
  std::int64_t within() const {
    const std::int64_t side = window / merge / patch;
    return side * side * joined();
  }
};

/// The keys of vision_config that the generations share.
QwenTower read_qwen_tower(const ModelConfig& v, std::int64_t width, std::int64_t depth,
                          std::int64_t patch, std::string_view activation) {
  QwenTower t;
  t.width = width;
  t.depth = v.count({"depth"}, depth);
  t.heads = v.count({"num_heads"}, 16);
  t.merge = v.count({"spatial_merge_size"}, 2);
  t.patch = v.count({"patch_size"}, patch);
  t.activation = read_activation(v, "hidden_act", activation);
  return t;
}

/// visual.patch_embed.proj over temporal_patch_size images.
void patch_volume(ModelBuilder& m, const ModelConfig& v, QwenTower& t, bool bias) {
  const std::string name = "model.visual.patch_embed.proj";
  const std::int64_t channels = v.count({"in_channels", "in_chans"}, 3);
  const std::int64_t frames = v.count({"temporal_patch_size"}, 2);
  t.values = checked_mul(channels * frames, t.patch * t.patch);
  t.kernel = m.tensor(name + ".weight", {t.width, channels, frames, t.patch, t.patch},
                      ParameterKind::linear);
  if (bias) t.kernel_bias = m.tensor(name + ".bias", {t.width}, ParameterKind::bias);
}

void attention_of_tower(ModelBuilder& m, std::int64_t width, QwenLayers& l) {
  l.qkv = m.linear("attn.qkv", width, 3 * width, true);
  l.out = m.linear("attn.proj", width, width, true);
}

/// Registers the layers, those that attend alike in a row at once: `add` registers the modules of
/// one.
template <typename Add>
void register_layers(ModelBuilder& m, QwenTower& t, Add&& add) {
  const auto whole = [&](std::int64_t i) {
    return t.window == 0 || std::find(t.whole.begin(), t.whole.end(), i) != t.whole.end();
  };
  for (std::int64_t i = 0; i < t.depth;) {
    std::int64_t end = i + 1;
    while (end < t.depth && whole(end) == whole(i)) ++end;
    m.begin_repeat("model.visual.blocks", end - i, i);
    QwenLayers layers{.count = end - i, .whole = whole(i)};
    add(layers);
    m.end_repeat();
    t.layers.push_back(layers);
    i = end;
  }
}

void old_merger(ModelBuilder& m, QwenTower& t, std::int64_t out, bool norm_bias) {
  t.merger.norm = m.layer_norm("model.visual.merger.ln_q", t.width, norm_bias);
  t.merger.first = m.linear("model.visual.merger.mlp.0", t.merged(), t.merged(), true);
  t.merger.second = m.linear("model.visual.merger.mlp.2", t.merged(), out, true);
}

ValueId tower_norm(Graph& g, const QwenTower& t, const NormModule& norm, ValueId x) {
  return t.rms ? rms_norm(g, norm, x) : layer_norm(g, norm, x);
}

/// Tokens of an image, as many as its patches are merged to.
struct QwenImage {
  std::int64_t tokens = 0;
  Extent all(std::int64_t width) const { return {checked_mul(tokens, width), Scale::images}; }
};

/// hidden_states[window_index]: the rows of tokens in another order, and the index.
ValueId reordered(Graph& g, const QwenImage& image, ValueId x) {
  Op op{OpKind::gather_rows, {x, kNone, kNone}};
  op.side = image.all(1);
  return g.op(op, g.value(x).extent);
}

ValueId embed_patches(Graph& g, const ModelBuilder& m, const QwenTower& t, const QwenImage& image) {
  const ValueId pixels = g.op({OpKind::batch}, {t.values, Scale::patches});
  Op patches{OpKind::linear, {pixels, kNone, kNone}};
  patches.module = m.owner(t.kernel);
  patches.weight = t.kernel;
  patches.bias = t.kernel_bias;
  patches.work = {checked_mul(t.values, t.width), Scale::patches};
  const ValueId rows = g.op(patches, {t.width, Scale::patches});
  if (t.window > 0) return reordered(g, image, rows);
  if (!t.places) return rows;
  // Four places of the table for each patch, weighed in fp32 and summed; indices and weights stay.
  Op corners{OpKind::embedding};
  corners.module = t.places->module;
  corners.weight = t.places->weight;
  corners.side = {6, Scale::patches};
  const ValueId four = g.op(corners, {4 * t.width, Scale::patches});
  const ValueId weighed = g.map(OpKind::scalar, g.map(OpKind::to_f32, four));
  const ValueId sum = g.op({OpKind::mean, {weighed, kNone, kNone}}, {t.width, Scale::patches});
  return g.map(OpKind::add, rows, g.map(OpKind::to_like, sum, rows));
}

ValueId tower_layer(Graph& g, const QwenTower& t, const QwenLayers& l, AttentionKind kind,
                    const RotaryTables& tables, ValueId x) {
  const AttentionShape shape{.heads = t.heads,
                             .kv_heads = t.heads,
                             .head_dim = t.width / t.heads,
                             .queries = Scale::patches,
                             .keys = Scale::patches,
                             .causal = false,
                             .within = l.whole ? 0 : t.within(),
                             .one_by_one = true};
  const ValueId read = tower_norm(g, t, l.norm1, x);
  const ValueId fused = apply(g, l.qkv, read);
  Rotation turn = rotation(g, tables, Scale::patches);
  turn.upcast = turn.cast_back = true;
  ValueId q = slice(g, fused, t.width), k = slice(g, fused, t.width);
  rotate_both(g, turn, q, t.heads, k, t.heads, shape.head_dim);
  const ValueId v = slice(g, fused, t.width);
  // The pieces' results are joined, even where there is one.
  const ValueId pieces = attention(g, kind, shape, q, k, v);
  const ValueId attended = apply(g, l.out, g.map(OpKind::copy, pieces));
  for (const ValueId local : {read, q, k, v, pieces}) g.hold(local, attended);
  const ValueId middle = g.map(OpKind::add, x, attended);
  const ValueId normal = tower_norm(g, t, l.norm2, middle);
  const ValueId delta = l.gated
                            ? gated_mlp(g, *l.gated, t.activation, normal)
                            : apply(g, l.down, activate(g, t.activation, apply(g, l.up, normal)));
  g.hold(normal, delta);
  return g.map(OpKind::add, middle, delta);
}

ValueId merge(Graph& g, const QwenTower& t, const QwenMerger& merger, const QwenImage& image,
              ValueId x) {
  const Extent joined = image.all(t.merged());
  const ValueId rows = merger.joined_norm ? tower_norm(g, t, merger.norm, g.view(x, joined))
                                          : g.view(tower_norm(g, t, merger.norm, x), joined);
  return apply(g, merger.second, g.map(OpKind::gelu, apply(g, merger.first, rows)));
}

/// The rows of tokens. Those of deeper layers come with them, as parts of one tensor: the mergers
/// read what those layers left, which is kept for the next ones as the last layer's result is here.
void write_mergers(ModelBuilder& m, const QwenTower& t, const QwenImage& image) {
  Graph& g = m.begin_segment("projector");
  const ValueId x = g.chained_input({t.width, Scale::patches});
  std::vector<ValueId> parts;
  for (const QwenMerger& merger : t.deep) {
    // Of a frozen tower nothing but the merger keeps what its layer left.
    const ValueId left = tower_trains(m.options()) ? x : g.map(OpKind::copy, x);
    parts.push_back(merge(g, t, merger, image, left));
  }
  const ValueId merged = merge(g, t, t.merger, image, x);
  const ValueId ordered = t.window > 0 ? reordered(g, image, merged) : merged;
  if (parts.empty()) return g.set_output(g.map(OpKind::copy, ordered));  // torch.cat of the images
  const std::int64_t width = g.value(ordered).extent.per * (1 + std::ssize(parts));
  const ValueId all = g.op({OpKind::cat, {ordered, kNone, kNone}}, {width, Scale::images});
  for (const ValueId part : parts) g.join(part, all);
  g.set_output(all);
}

void write_qwen_tower(ModelBuilder& m, const QwenTower& t, const QwenImage& image) {
  Graph& e = m.begin_segment("tower embedding");
  e.set_output(embed_patches(e, m, t, image));
  const RotaryTables tables = share_rotary(m, t.width / t.heads, Scale::patches, true);
  for (const QwenLayers& layers : t.layers) {
    Graph& l = m.begin_segment("tower layers", layers.count, true);
    const ValueId x = l.chained_input({t.width, Scale::patches});
    l.set_output(tower_layer(l, t, layers, m.options().attention, tables, x));
  }
  write_mergers(m, t, image);
}

/// Files of before transformers 4.52 have the text model's keys beside the tower's.
ModelConfig with_text_inside(const ModelConfig& c) {
  return c.entries("text_config") > 0 ? c : c.nested("text_config");
}

Model text_of(const ModelConfig& c, const BuildOptions& options, std::string_view type,
              bool text_ties) {
  const bool tied = c.flag("tie_word_embeddings", false) ||
                    (text_ties && c.flag("text_config.tie_word_embeddings", false));
  BuildOptions text_options = options;
  text_options.tables_of_batch = true;
  Model text = text_inside(with_text_inside(c), text_options, type, tied);
  rename_prefix(text, "model.", "model.language_model.");
  return text;
}

/// The most tokens that the class's processor makes of an image: 28·28·1280 pixels
/// (image_processing_qwen2_vl.py); checkpoints' own processors may allow more.
std::int64_t most_tokens(const QwenTower& t) {
  const std::int64_t side = t.patch * t.merge;
  return std::max<std::int64_t>(1, 28 * 28 * 1280 / (side * side));
}

/// The tower in front of its text model.
Model around(const ModelConfig& c, const BuildOptions& options, const QwenTower& t, Model text,
             ModelBuilder& m) {
  if (!options.counts_only)
    c.require_divisible("vision_config.hidden_size", t.width, "vision_config.num_heads", t.heads);
  if (!reads_images(c, options, TowerCaller::mcore_bridge))
    return with_images(m.build(), std::move(text), {});
  const bool said = options.images.tokens > 0;
  const QwenImage image{said ? options.images.tokens : most_tokens(t)};
  if (!said)
    text.facts.assumed.push_back(
        fmt::format("{} tokens for an image, the most that the processor's class makes by default",
                    image.tokens));
  write_qwen_tower(m, t, image);
  const std::int64_t patches = checked_mul(image.tokens, t.joined());
  return with_images(
      m.build(), std::move(text),
      {.tokens = image.tokens, .patches = patches, .values = checked_mul(patches, t.values)},
      std::ssize(t.deep));
}

/// The merger of 3-VL; one after the deeper layers has its norm over the joined rows.
QwenMerger new_merger(ModelBuilder& m, const std::string& at, const QwenTower& t, std::int64_t out,
                      bool joined_norm) {
  QwenMerger merger;
  merger.joined_norm = joined_norm;
  merger.norm = m.layer_norm(at + "norm", joined_norm ? t.merged() : t.width);
  merger.first = m.linear(at + "linear_fc1", t.merged(), t.merged(), true);
  merger.second = m.linear(at + "linear_fc2", t.merged(), out, true);
  return merger;
}

/// The tower of 3-VL and 3.5, with `deep` mergers of deeper layers.
QwenTower new_tower(ModelBuilder& m, const ModelConfig& v, std::int64_t deep) {
  QwenTower t = read_qwen_tower(v, v.count({"hidden_size"}, 1152), 27, 16, "gelu_pytorch_tanh");
  const std::int64_t out = v.count({"out_hidden_size"}, 3584);
  const std::int64_t ffn = v.count({"intermediate_size"}, 4304);
  m.set_trains(tower_trains(m.options()));
  patch_volume(m, v, t, true);
  t.places =
      m.embedding("model.visual.pos_embed", v.count({"num_position_embeddings"}, 2304), t.width);
  register_layers(m, t, [&](QwenLayers& l) {
    l.norm1 = m.layer_norm("norm1", t.width);
    l.norm2 = m.layer_norm("norm2", t.width);
    attention_of_tower(m, t.width, l);
    l.up = m.linear("mlp.linear_fc1", t.width, ffn, true);
    l.down = m.linear("mlp.linear_fc2", ffn, t.width, true);
  });
  m.set_trains(projector_trains(m.options()));
  m.set_like_blocks(true);
  t.merger = new_merger(m, "model.visual.merger.", t, out, false);
  for (std::int64_t i = 0; i < deep; ++i)
    t.deep.push_back(
        new_merger(m, fmt::format("model.visual.deepstack_merger_list.{}.", i), t, out, true));
  return t;
}

/// How many layers of the text model are given rows of the tower's.
std::int64_t deep_layers(const ModelConfig& v) {
  return v.has("deepstack_visual_indexes") ? v.length("deepstack_visual_indexes") : 3;
}

/// Qwen 3-VL, with the text model of `type`.
Model build_with_deep_layers(const ModelConfig& c, const BuildOptions& options,
                             std::string_view type) {
  const ModelConfig v = c.inner("vision_config");
  ModelBuilder m(tower_options(options));
  const QwenTower t = new_tower(m, v, deep_layers(v));
  BuildOptions apart = options;
  if (reads_images(c, options, TowerCaller::mcore_bridge)) apart.layers_apart = std::ssize(t.deep);
  return around(c, options, t, text_of(c, apart, type, false), m);
}

}  // namespace

Model build_qwen2_vl(const ModelConfig& c, const BuildOptions& options) {
  const ModelConfig v = c.inner("vision_config");
  const std::int64_t width = v.count({"embed_dim"}, 1280);
  const std::int64_t ffn = checked_mul(width, v.count({"mlp_ratio"}, 4));
  QwenTower t = read_qwen_tower(v, width, 32, 14, "quick_gelu");
  ModelBuilder m(tower_options(options));
  m.set_trains(tower_trains(options));
  patch_volume(m, v, t, false);
  register_layers(m, t, [&](QwenLayers& l) {
    l.norm1 = m.layer_norm("norm1", width);
    l.norm2 = m.layer_norm("norm2", width);
    attention_of_tower(m, width, l);
    l.up = m.linear("mlp.fc1", width, ffn, true);
    l.down = m.linear("mlp.fc2", ffn, width, true);
  });
  m.set_trains(projector_trains(options));
  m.set_like_blocks(true);
  old_merger(m, t, v.count({"hidden_size"}, 3584), true);
  return around(c, options, t, text_of(c, options, "qwen2_vl_text", true), m);
}

Model build_qwen2_5_vl(const ModelConfig& c, const BuildOptions& options) {
  const ModelConfig v = c.inner("vision_config");
  const std::int64_t width = v.count({"hidden_size"}, 3584);
  const std::int64_t ffn = v.count({"intermediate_size"}, 3420);
  QwenTower t = read_qwen_tower(v, width, 32, 14, "silu");
  t.rms = true;
  t.window = v.count({"window_size"}, 112);
  t.whole = v.counts("fullatt_block_indexes");
  if (t.whole.empty()) t.whole = {7, 15, 23, 31};
  ModelBuilder m(tower_options(options));
  m.set_trains(tower_trains(options));
  patch_volume(m, v, t, false);
  register_layers(m, t, [&](QwenLayers& l) {
    l.norm1 = m.rms_norm("norm1", width);
    l.norm2 = m.rms_norm("norm2", width);
    attention_of_tower(m, width, l);
    l.gated = gated_mlp(m, "mlp", width, ffn, true);
  });
  m.set_trains(projector_trains(options));
  m.set_like_blocks(true);
  old_merger(m, t, v.count({"out_hidden_size"}, 3584), false);
  return around(c, options, t, text_of(c, options, "qwen2_5_vl_text", true), m);
}

Model build_qwen3_vl(const ModelConfig& c, const BuildOptions& options) {
  return build_with_deep_layers(c, options, "qwen3_vl_text");
}

Model build_qwen3_vl_moe(const ModelConfig& c, const BuildOptions& options) {
  return build_with_deep_layers(c, options, "qwen3_vl_moe_text");
}

Model build_qwen3_5(const ModelConfig& c, const BuildOptions& options) {
  ModelBuilder m(tower_options(options));
  const QwenTower t = new_tower(m, c.inner("vision_config"), 0);
  return around(c, options, t, text_of(c, options, "qwen3_5_text", false), m);
}

Model build_qwen3_5_moe(const ModelConfig& c, const BuildOptions& options) {
  ModelBuilder m(tower_options(options));
  const QwenTower t = new_tower(m, c.inner("vision_config"), 0);
  return around(c, options, t, text_of(c, options, "qwen3_5_moe_text", false), m);
}

/// Qwen 2's and 2.5's text model, with the defaults of the networks with images.
Model build_qwen2_vl_text(const ModelConfig& c, const BuildOptions& options) {
  DecoderDescription d = read_decoder(c, {.hidden = 8192,
                                          .ffn = 29568,
                                          .layers = 80,
                                          .heads = 64,
                                          .kv_heads = 8,
                                          .vocab = 152064,
                                          .positions = 32768,
                                          .reads_head_dim = false});
  d.qkv_bias = true;
  return build_decoder(d, options);
}

Model build_qwen3_vl_text(const ModelConfig& c, const BuildOptions& options) {
  DecoderDescription d = read_decoder(c, {.hidden = 4096,
                                          .ffn = 22016,
                                          .layers = 32,
                                          .heads = 32,
                                          .kv_heads = 32,
                                          .head_dim = 128,
                                          .vocab = 151936,
                                          .positions = 128000});
  d.qkv_bias = d.output_bias = c.flag("attention_bias", false);
  d.query_key_norm = QueryKeyNorm::each_head;
  d.head_norms_at = HeadNormsAt::projection;
  return build_decoder(d, options);
}

Model build_qwen3_vl_moe_text(const ModelConfig& c, const BuildOptions& options) {
  DecoderDescription d = read_decoder(c, {.hidden = 2048,
                                          .ffn = 5632,
                                          .layers = 24,
                                          .heads = 16,
                                          .kv_heads = 16,
                                          .vocab = 151936,
                                          .positions = 128000,
                                          .tied = true});
  d.qkv_bias = d.output_bias = c.flag("attention_bias", false);
  d.query_key_norm = QueryKeyNorm::each_head;
  d.head_norms_at = HeadNormsAt::projection;
  SparseMlpShape s{.hidden = d.hidden,
                   .experts = c.count({"num_experts", "num_local_experts"}, 60),
                   .ffn = c.count({"moe_intermediate_size"}, 1408),
                   .normalize = true,
                   .experts_first = true};
  s.top_k = experts_per_token(c, "num_experts_per_tok", 4, s.experts);
  d.sparse = s;
  d.sparse_layers = read_sparse_layers(c, d.layers);
  return build_decoder(d, options);
}

}  // namespace shardplan
