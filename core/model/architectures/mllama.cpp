// Llama 3.2 with vision (models/mllama): layers of cross attention to image tiles among those of
// Llama 3. Without images the layers of cross attention are left out of the forward pass.
#include "model/architectures/mllama.h"

#include <algorithm>

#include "model/architectures/architectures.h"
#include "model/architectures/images.h"
#include "model/layers/convolution.h"
#include "model/layers/rotary_attention.h"

namespace shardplan {
namespace {

/// A kind of layer: it attends to images.
constexpr int kCrossing = 1;

struct MllamaText {
  std::int64_t hidden, ffn, layers, vocabulary, positions;
  AttentionShape shape;
  Activation activation;
  std::vector<LayerRun> runs;
};

struct MllamaLayer {
  RotaryAttention attention;  ///< its norms of heads are of a crossing layer
  ParameterId attention_gate = kNone, mlp_gate = kNone;
  GatedMlp mlp;
  NormModule before, after;
};

/// The text model's own modules.
struct MllamaModules {
  EmbeddingModule words;
  std::vector<MllamaLayer> layers;  ///< by run
  NormModule norm;
  LinearModule head;
};

/// What layers that attend to images are given; numbers in Model::shared.
struct ImageRows {
  std::int64_t each = 0;  ///< rows of an image
  std::int64_t seen = 0;  ///< by a token: those of all images of its sample
  std::int32_t features = kNone, mask = kNone, blind_tokens = kNone;
};

MllamaText read_mllama(const ModelConfig& c) {
  MllamaText t{};
  t.hidden = c.count({"hidden_size"}, 4096);
  t.ffn = c.count({"intermediate_size"}, 14336);
  t.layers = c.count({"num_hidden_layers"}, 40);
  t.vocabulary = c.count({"vocab_size"}, 128256);
  t.positions = c.count_or_zero("max_position_embeddings", 131072);
  t.activation = read_activation(c, "hidden_act", "silu");
  t.shape.heads = c.count({"num_attention_heads"}, 32);
  t.shape.kv_heads = c.count({"num_key_value_heads"}, 8);
  t.shape.dropout = c.number("dropout", 0.0);
  c.require_divisible("hidden_size", t.hidden, "num_attention_heads", t.shape.heads);
  c.require_divisible("num_attention_heads", t.shape.heads, "num_key_value_heads",
                      t.shape.kv_heads);
  t.shape.head_dim = t.hidden / t.shape.heads;
  std::vector<std::int64_t> crossing{3, 8, 13, 18, 23, 28, 33, 38};
  if (c.is_list("cross_attention_layers")) crossing = c.counts("cross_attention_layers");
  t.runs = layer_runs(t.layers, [&](std::int64_t i) {
    return std::find(crossing.begin(), crossing.end(), i) != crossing.end() ? kCrossing : 0;
  });
  return t;
}

MllamaLayer declare_layer(ModelBuilder& m, const MllamaText& t, bool crosses) {
  MllamaLayer l;
  if (crosses) {
    l.attention_gate = m.tensor("cross_attn_attn_gate", {1}, ParameterKind::other);
    l.mlp_gate = m.tensor("cross_attn_mlp_gate", {1}, ParameterKind::other);
  }
  const char* name = crosses ? "cross_attn" : "self_attn";
  l.attention = rotary_attention(m, t.hidden, t.shape, false, false, crosses, name);
  if (crosses) l.before = m.rms_norm("input_layernorm", t.hidden);
  l.mlp = gated_mlp(m, "mlp", t.hidden, t.ffn);
  if (!crosses) l.before = m.rms_norm("input_layernorm", t.hidden);
  l.after = m.rms_norm("post_attention_layernorm", t.hidden);
  return l;
}

/// Embeddings, layers and norm below `prefix`.
MllamaModules declare_text(ModelBuilder& m, const MllamaText& t, const std::string& prefix,
                           bool crosses) {
  MllamaModules modules;
  // Eight tokens of images have rows of the table and none of the head.
  modules.words = m.embedding(prefix + "embed_tokens", t.vocabulary + 8, t.hidden);
  const bool trains = m.trains();
  for (const LayerRun& run : t.runs) {
    const bool crossing = run.kind == kCrossing;
    m.set_trains(trains && (!crossing || crosses || m.options().counts_only));
    m.begin_repeat(prefix + "layers", run.count, run.start);
    modules.layers.push_back(declare_layer(m, t, crossing));
    m.end_repeat();
  }
  m.set_trains(trains);
  modules.norm = m.rms_norm(prefix + "norm", t.hidden);
  return modules;
}

void declare_head(ModelBuilder& m, const MllamaText& t, MllamaModules& modules) {
  modules.head = m.linear("lm_head", t.hidden, t.vocabulary);
}

ValueId fed(Graph& g, const MllamaText& t, const MllamaLayer& l, ValueId x) {
  return gated_mlp(g, l.mlp, t.activation, rms_norm(g, l.after, x));
}

ValueId self_layer(Graph& g, const MllamaText& t, const MllamaLayer& l, AttentionKind kind,
                   const Positions& at, ValueId x) {
  const ValueId mixed = apply(g, l.attention, kind, at, rms_norm(g, l.before, x));
  const ValueId middle = g.map(OpKind::add, x, mixed);
  return g.map(OpKind::add, middle, fed(g, t, l, middle));
}

/// Attention of tokens to the rows of their sample's images. The memory-efficient kernel wants rows
/// of the mask in eights and makes a copy that has them (aten, pad_bias).
ValueId cross_attention(Graph& g, const MllamaLayer& l, AttentionKind kind, const ImageRows& rows,
                        ValueId x) {
  AttentionShape shape = l.attention.shape;
  const std::int64_t hidden = l.attention.q.in, kept_heads = shape.kv_heads;
  const ValueId features = g.shared_input(rows.features, {hidden * rows.each, Scale::images});
  const ValueId q = rms_norm(g, *l.attention.q_norm, apply(g, l.attention.q, x));
  const ValueId k = rms_norm(g, *l.attention.k_norm, apply(g, l.attention.k, features));
  const ValueId v = apply(g, l.attention.v, features);
  shape.within = rows.seen;
  shape.causal = false;
  const ValueId mask = g.shared_input(rows.mask, {rows.seen, Scale::tokens});
  if (kind != AttentionKind::sdpa) return attention(g, kind, shape, q, k, v, mask);
  const auto all_heads = [&](ValueId y) {
    const Extent given = g.value(y).extent;
    return kept_heads == shape.heads ? y
                                     : g.op({OpKind::copy, {y, kNone, kNone}},
                                            {given.per / kept_heads * shape.heads, given.scale});
  };
  const ValueId keys = all_heads(k), values = all_heads(v);
  const bool whole = rows.seen % 8 == 0;
  return masked_attention(g, shape, q, keys, values, whole ? mask : kNone, round_up(rows.seen, 8));
}

ValueId cross_layer(Graph& g, const ModelBuilder& m, const MllamaText& t, const MllamaLayer& l,
                    const ImageRows& rows, ValueId x) {
  const auto gated = [&](ParameterId gate, ValueId y) {
    return g.map(OpKind::mul, y, g.map(OpKind::tanh, parameter_value(g, m, gate, 1)));
  };
  const ValueId mixed =
      cross_attention(g, l, m.options().attention, rows, rms_norm(g, l.before, x));
  const ValueId middle =
      g.map(OpKind::add, x, gated(l.attention_gate, apply(g, l.attention.o, mixed)));
  const ValueId blind = g.shared_input(rows.blind_tokens, {1, Scale::tokens});
  const ValueId seen = g.map(OpKind::mul, fed(g, t, l, middle), blind);
  return g.map(OpKind::add, middle, gated(l.mlp_gate, seen));
}

/// `rows`: nullptr without images. `upcasts`: the class casts its logits itself.
void write_text(ModelBuilder& m, const MllamaText& t, const MllamaModules& modules,
                const ImageRows* rows, bool upcasts) {
  const AttentionKind kind = m.options().attention;
  Graph& e = m.begin_segment("embedding");
  e.set_output(apply(e, modules.words, Scale::tokens));
  Positions at{.tables = share_rotary(m, t.shape.head_dim), .mask = share_causal_mask(m, kind)};
  for (std::size_t i = 0; i < t.runs.size(); ++i) {
    const bool crossing = t.runs[i].kind == kCrossing;
    if (crossing && rows == nullptr) continue;
    Graph& g =
        m.begin_segment(crossing ? "layers that see images" : "layers", t.runs[i].count, true);
    const ValueId x = g.chained_input({t.hidden, Scale::tokens});
    const MllamaLayer& l = modules.layers[i];
    g.set_output(crossing ? cross_layer(g, m, t, l, *rows, x) : self_layer(g, t, l, kind, at, x));
  }
  Graph& h = m.begin_segment("head");
  const ValueId normal = rms_norm(h, modules.norm, h.chained_input({t.hidden, Scale::tokens}));
  h.set_output(
      language_model_loss(h, modules.head, normal, upcasts ? LogitMap::upcast : LogitMap::none));
}

ModelFacts facts_of(const MllamaText& t) {
  return {.hidden = t.hidden,
          .layers = t.layers,
          .vocabulary = t.vocabulary,
          .max_positions = t.positions,
          .attention_heads = t.shape.heads,
          .key_value_heads = t.shape.kv_heads,
          .undivided = true};
}

constexpr const char* kWhat = "layers that attend to images";

}  // namespace

Model build_mllama_text(const ModelConfig& c, const BuildOptions& options) {
  require_training(c, options, kWhat);
  const MllamaText t = read_mllama(c);
  ModelBuilder m(options);
  m.facts() = facts_of(t);
  MllamaModules modules = declare_text(m, t, "model.", false);
  declare_head(m, t, modules);
  write_text(m, t, modules, nullptr, true);
  return m.build();
}

Model build_mllama(const ModelConfig& c, const BuildOptions& options) {
  const bool images = reads_images(c, options);
  require_training(c, options, kWhat);
  const ModelConfig v = c.inner("vision_config");
  const MllamaText t = read_mllama(c.inner("text_config"));
  ModelBuilder m(options);
  m.facts() = facts_of(t);
  m.facts().image.has_tower = true;
  const bool trains = m.trains();
  m.set_like_blocks(true);
  m.set_trains(tower_trains(options));
  const MllamaTower tower = mllama_tower(m, "model.vision_model.", v);
  m.set_like_blocks(false);
  m.set_trains(trains);
  MllamaModules modules = declare_text(m, t, "model.language_model.", images);
  m.set_trains(projector_trains(options));
  const std::int64_t width = v.count({"vision_output_dim"}, 7680);
  const LinearModule projector = m.linear("model.multi_modal_projector", width, t.hidden, true);
  m.set_trains(trains);
  declare_head(m, t, modules);
  if (!images) {
    write_text(m, t, modules, nullptr, false);
    return m.build();
  }
  if (width != tower.features())
    v.fail("vision_output_dim", "is not the width of the layers that are read",
           "hidden_size times the layers of intermediate_layers_indices and one");
  m.facts().image = {.tokens = fixed_tokens(c, options, 1),
                     .patches = checked_mul(tower.tiles, tower.padded()),
                     .values = tower.values,
                     .has_tower = true};
  write_mllama_tower(m, tower);
  ImageRows rows;
  rows.each = checked_mul(tower.tiles, tower.rows());
  rows.seen = checked_mul(rows.each, options.images.per_sample);
  Graph& p = m.begin_segment("projector");
  const ValueId features = p.chained_input({checked_mul(rows.each, width), Scale::images});
  p.set_output(apply(p, projector, features));
  rows.features =
      m.share_output("image features", {checked_mul(rows.each, t.hidden), Scale::images});
  rows.mask = m.share("tiles of tokens", {rows.seen, Scale::tokens});
  rows.blind_tokens = m.share("tokens that see images", {1, Scale::tokens});
  write_text(m, t, modules, &rows, false);
  return m.build();
}

}  // namespace shardplan
