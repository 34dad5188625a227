#include "model/architectures/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "model/layers/attention.h"
#include "model/layers/rotary.h"
#include "model/layers/token_prediction.h"

namespace shardplan {
namespace {

struct DecoderLayer {
  LinearModule q, k, v, qkv, out;
  std::vector<NormModule> q_norms, k_norms;  ///< one, or one a head
  GatedMlp gated;
  FusedGatedMlp fused;
  std::optional<SparseMlp> sparse;
  LinearModule up, down;
  std::optional<Xielu> learned;
  std::array<std::optional<NormModule>, 4> norms;  ///< by NormPlace
};

std::vector<NormModule> register_head_norms(ModelBuilder& m, const DecoderDescription& d,
                                            std::string_view name, std::int64_t heads) {
  const std::string full = fmt::format("self_attn.{}", name);
  std::vector<NormModule> norms;
  switch (d.query_key_norm) {
    case QueryKeyNorm::none:
      break;
    case QueryKeyNorm::each_head:
      norms.push_back(d.query_key_kind == NormKind::layer
                          ? m.layer_norm(full, d.head_dim, d.query_key_norm_bias)
                          : register_norm(m, d.query_key_kind, full, d.head_dim));
      break;
    case QueryKeyNorm::each_head_own:
      for (std::int64_t i = 0; i < heads; ++i)
        norms.push_back(
            m.layer_norm(fmt::format("{}.norms.{}", full, i), d.head_dim, d.query_key_norm_bias));
      break;
    case QueryKeyNorm::weight_rows:
      norms.push_back(m.norm_of_heads(full, heads, d.head_dim));
      break;
    case QueryKeyNorm::whole:
      norms.push_back(register_norm(m, d.query_key_kind, full, heads * d.head_dim));
      break;
  }
  return norms;
}

void register_mlp(ModelBuilder& m, const DecoderDescription& d, bool sparse, DecoderLayer& l) {
  if (sparse) {
    l.sparse = sparse_mlp(m, *d.sparse);
    return;
  }
  switch (d.mlp) {
    case MlpKind::gated:
      l.gated = gated_mlp(m, "mlp", d.hidden, d.ffn, d.mlp_bias);
      break;
    case MlpKind::fused_gated:
      l.fused = fused_gated_mlp(m, "mlp", d.hidden, d.ffn);
      break;
    case MlpKind::plain:
      l.up = m.linear(fmt::format("mlp.{}", d.up_name), d.hidden, d.ffn, d.mlp_bias);
      l.down = m.linear(fmt::format("mlp.{}", d.down_name), d.ffn, d.hidden, d.mlp_bias);
      if (d.learned_activation) l.learned = xielu(m, "mlp.act_fn");
      break;
  }
}

DecoderLayer register_layer(ModelBuilder& m, const DecoderDescription& d, bool sparse) {
  DecoderLayer l;
  const std::int64_t q_width = d.heads * d.head_dim, kv_width = d.kv_heads * d.head_dim;
  const std::string out_name = fmt::format("self_attn.{}", d.output_name);
  if (d.fused_qkv) {
    l.out = m.linear(out_name, q_width, d.hidden, d.output_bias);
    l.qkv = m.linear("self_attn.qkv_proj", d.hidden, q_width + 2 * kv_width, d.qkv_bias);
  } else {
    l.q = m.linear("self_attn.q_proj", d.hidden, q_width, d.qkv_bias);
    l.k = m.linear("self_attn.k_proj", d.hidden, kv_width, d.qkv_bias);
    l.v = m.linear("self_attn.v_proj", d.hidden, kv_width, d.qkv_bias);
    l.out = m.linear(out_name, q_width, d.hidden, d.output_bias);
  }
  l.q_norms = register_head_norms(m, d, d.query_norm, d.heads);
  l.k_norms = register_head_norms(m, d, d.key_norm, d.kv_heads);
  if (!d.mlp_after_norms) register_mlp(m, d, sparse, l);
  for (const PlacedNorm& n : d.norms)
    l.norms[static_cast<std::size_t>(n.place)] = register_norm(m, d.norm, n.name, d.hidden);
  if (d.mlp_after_norms) register_mlp(m, d, sparse, l);
  return l;
}

ValueId norm_at(Graph& g, const DecoderDescription& d, const DecoderLayer& l, NormPlace place,
                ValueId x) {
  const auto& norm = l.norms[static_cast<std::size_t>(place)];
  return norm ? normalize(g, d.norm, *norm, x) : x;
}

ValueId norm_heads(Graph& g, const DecoderDescription& d, const std::vector<NormModule>& norms,
                   ValueId x) {
  if (norms.empty()) return x;
  // OLMo 2's and Hunyuan's, which Liger leaves as they are.
  if (d.query_key_norm == QueryKeyNorm::whole || d.head_norms_at == HeadNormsAt::turned)
    return normalize_unpatched(g, d.query_key_kind, norms.front(), x);
  if (d.query_key_norm != QueryKeyNorm::each_head_own)
    return normalize(g, d.query_key_kind, norms.front(), x,
                     d.query_key_norm == QueryKeyNorm::weight_rows ? per(g, x) : 0);
  // torch.split, one norm a head, torch.cat.
  const Extent all = g.value(x).extent;
  std::vector<ValueId> heads;
  for (const NormModule& n : norms) heads.push_back(layer_norm(g, n, slice(g, x, d.head_dim)));
  const ValueId merged = g.op({OpKind::cat, {heads.front(), kNone, kNone}}, all);
  for (std::size_t i = 1; i < heads.size(); ++i) g.join(heads[i], merged);
  return merged;
}

bool is_f32(RotaryKind tables) {
  return tables == RotaryKind::f32_tables || tables == RotaryKind::f32_pairs;
}

/// Whether the rotated dims are joined with those that pass through, even if there are none.
bool concatenates(const DecoderDescription& d) {
  return d.rotary == RotaryKind::sliced || d.rotary == RotaryKind::interleaved;
}

Rotation rotation_of(Graph& g, const DecoderDescription& d, const RotaryTables& tables) {
  Rotation r = rotation(g, tables);
  r.always_cat = concatenates(d);
  r.upcast = d.rotary == RotaryKind::f32;
  r.late_upcast = d.rotary == RotaryKind::f32_pairs;
  r.cast_back = r.upcast || r.late_upcast || d.rotary == RotaryKind::f32_tables;
  r.pairs = d.rotary == RotaryKind::interleaved || r.upcast || r.late_upcast;
  if (d.rotary == RotaryKind::interleaved || r.late_upcast) {
    const auto interleave = [&](ValueId table) {
      const ValueId half = slice(g, table, d.rotary_dim / 2);
      return g.op({OpKind::copy, {half, kNone, kNone}}, {d.rotary_dim, Scale::sequence});
    };
    r.cos = interleave(r.cos);
    r.sin = interleave(r.sin);
  }
  return r;
}

/// What the layers of one kind, sliding or full, share.
struct LayerContext {
  AttentionKind kind = AttentionKind::sdpa;
  std::int64_t window = 0;
  RotaryTables tables;
  std::int32_t mask = kNone;
  std::int32_t boolean = kNone;  ///< in Model::shared: the mask that all layers are given
  bool turned = true;            ///< by rotary positions
};

/// The rotation of queries and keys and those of their norms that do not belong to the projections.
void turn_heads(Graph& g, const DecoderDescription& d, const DecoderLayer& l,
                const LayerContext& context, ValueId& q, ValueId& k) {
  const auto norm_both = [&] {
    q = norm_heads(g, d, l.q_norms, q);
    k = norm_heads(g, d, l.k_norms, k);
  };
  const bool turned = d.head_norms_at == HeadNormsAt::turned;
  if (d.head_norms_at == HeadNormsAt::projected) norm_both();
  if (!turned && !context.turned) return;
  const Rotation turn = rotation_of(g, d, context.tables);
  rotate_both(g, turn, q, d.heads, k, d.kv_heads, d.head_dim);
  if (turned) norm_both();
  if (d.scales_queries) {
    // 1 + beta·log(1 + position // length): made of the positions in every layer.
    const ValueId factor = g.op({OpKind::copy, {turn.cos, kNone, kNone}}, {1, Scale::sequence});
    q = g.map(OpKind::mul, q, factor);
  }
}

ValueId self_attention(Graph& g, const DecoderDescription& d, const DecoderLayer& l,
                       const LayerContext& context, ValueId x) {
  ValueId q = kNone, k = kNone, v = kNone;
  if (d.fused_qkv) {
    const ValueId fused = apply(g, l.qkv, x);
    const auto part = [&](std::int64_t heads) {
      const Extent extent{heads * d.head_dim, g.value(fused).extent.scale};
      return g.fuses() ? g.view(fused, extent) : g.cut(fused, extent);  // Megatron splits it
    };
    q = part(d.heads);
    k = part(d.kv_heads);
    v = part(d.kv_heads);
  } else {
    const bool whole = d.query_key_norm == QueryKeyNorm::whole;
    const auto projected = [&](const LinearModule& linear, const std::vector<NormModule>& norms) {
      const auto heads = [&](ValueId y) { return context.turned ? split_heads(g, y) : y; };
      ValueId made = apply(g, linear, x);
      if (d.clips_projections) made = g.map(OpKind::clamp, made);
      const ValueId y = whole ? made : heads(made);
      const bool now = d.head_norms_at == HeadNormsAt::projection;
      const ValueId normal = now ? norm_heads(g, d, norms, y) : y;
      return whole ? heads(normal) : normal;
    };
    q = projected(l.q, l.q_norms);
    k = projected(l.k, l.k_norms);
    v = apply(g, l.v, x);
    if (d.clips_projections) v = g.map(OpKind::clamp, v);
  }
  turn_heads(g, d, l, context, q, k);
  if (context.boolean != kNone) g.shared_input(context.boolean, {1, Scale::scores, 2});
  const AttentionShape shape{.heads = d.heads,
                             .kv_heads = d.kv_heads,
                             .head_dim = d.head_dim,
                             .dropout = d.attention_dropout,
                             .window = context.boolean == kNone ? context.window : 1,
                             .heads_first = concatenates(d) && g.fused(KernelName::rope) == nullptr,
                             .softcap = d.score_softcap,
                             .mask = context.mask};
  const ValueId out = apply(g, l.out, attention(g, context.kind, shape, q, k, v));
  name_locals(g, x, q, k, v, out);
  return dropout(g, out, d.attention_residual_dropout);
}

ValueId feed_forward(Graph& g, const DecoderDescription& d, const DecoderLayer& l, ValueId x) {
  if (l.sparse) return apply(g, *l.sparse, d.activation, x);
  ValueId y = kNone;
  g.set_tiled(true);
  switch (d.mlp) {
    case MlpKind::gated:
      y = gated_mlp(g, l.gated, d.activation, x);
      break;
    case MlpKind::fused_gated:
      y = fused_gated_mlp(g, l.fused, d.activation, x);
      break;
    case MlpKind::plain:
      y = apply(g, l.up, x);
      y = apply(g, l.down, l.learned ? apply(g, *l.learned, y) : activate(g, d.activation, y));
      break;
  }
  g.set_tiled(false);
  return dropout(g, y, d.mlp_residual_dropout);
}

ValueId add_residual(Graph& g, const DecoderDescription& d, ValueId x, ValueId delta) {
  return g.map(OpKind::add, x, d.scales_residuals ? g.map(OpKind::scalar, delta) : delta);
}

ValueId layer_output(Graph& g, const DecoderDescription& d, const DecoderLayer& l,
                     const LayerContext& context, ValueId x) {
  const ValueId n1 = norm_at(g, d, l, NormPlace::before_attention, x);
  const ValueId mixed =
      norm_at(g, d, l, NormPlace::after_attention, self_attention(g, d, l, context, n1));
  if (d.parallel) {
    const ValueId delta = feed_forward(g, d, l, n1);
    g.hold(n1, delta);
    return g.map(OpKind::add, g.map(OpKind::add, x, mixed), delta);
  }
  const ValueId middle = add_residual(g, d, x, mixed);
  const ValueId n2 = norm_at(g, d, l, NormPlace::before_mlp, middle);
  const ValueId fed = feed_forward(g, d, l, n2);
  g.hold(n2, fed);
  const ValueId delta = norm_at(g, d, l, NormPlace::after_mlp, fed);
  return add_residual(g, d, middle, delta);
}

/// Consecutive layers of one kind.
struct WindowRun {
  std::int64_t first = 0, count = 0;
  bool sliding = false, turned = true, sparse = false, apart = false;
  bool like(const WindowRun& other) const {
    return sliding == other.sliding && turned == other.turned && sparse == other.sparse && !apart &&
           !other.apart;
  }
  DecoderLayer layer;
};

/// `apart`: first layers that are runs of their own.
std::vector<WindowRun> runs_of(const DecoderDescription& d, std::int64_t apart) {
  std::vector<WindowRun> runs;
  for (std::int64_t i = 0; i < d.layers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool sliding = d.window > 0 && (d.sliding.empty() || d.sliding[at]);
    const bool turned = d.unturned.empty() || !d.unturned[at];
    const bool sparse = d.sparse && (d.sparse_layers.empty() || d.sparse_layers[at]);
    const WindowRun run{i, 0, sliding, turned, sparse, i < apart, {}};
    if (runs.empty() || !runs.back().like(run)) runs.push_back(run);
    ++runs.back().count;
  }
  return runs;
}

void add_embedding(ModelBuilder& m, const DecoderDescription& d, const EmbeddingModule& words,
                   const EmbeddingModule& places) {
  Graph& e = m.begin_segment("embedding");
  const bool in_module = d.embedding_scale == EmbeddingScale::in_module;
  ValueId tokens =
      in_module ? apply_scaled(e, words, Scale::tokens) : apply(e, words, Scale::tokens);
  if (d.embedding_scale == EmbeddingScale::in_model) tokens = e.map(OpKind::scalar, tokens);
  e.name_in_model(tokens);
  if (d.learned_positions) {
    const ValueId position = apply(e, places, Scale::sequence);
    e.name_in_model(position);
    tokens = e.map(OpKind::add, tokens, position);
  }
  e.set_output(dropout(e, tokens, d.embedding_dropout));
}

}  // namespace

void make_sparse_from(DecoderDescription& d, const SparseMlpShape& shape, std::int64_t first) {
  d.sparse = shape;
  for (std::int64_t i = 0; i < d.layers; ++i) d.sparse_layers.push_back(i >= first);
}

std::vector<bool> read_sparse_layers(const ModelConfig& c, std::int64_t layers) {
  const std::vector<std::int64_t> dense = c.counts("mlp_only_layers");
  const std::int64_t step = c.count({"decoder_sparse_step"}, 1);
  std::vector<bool> sparse;
  for (std::int64_t i = 0; i < layers; ++i)
    sparse.push_back(std::find(dense.begin(), dense.end(), i) == dense.end() &&
                     (i + 1) % step == 0);
  return sparse;
}

DecoderDescription read_decoder(const ModelConfig& c, const DecoderDefaults& defaults) {
  DecoderDescription d;
  d.hidden = c.count({"hidden_size"}, defaults.hidden);
  d.ffn = c.count({"intermediate_size"}, defaults.ffn);
  d.layers = c.count({"num_hidden_layers"}, defaults.layers);
  d.heads = c.count({"num_attention_heads"}, defaults.heads);
  const std::int64_t kv_default = defaults.kv_heads > 0 ? defaults.kv_heads : d.heads;
  d.kv_heads = c.nullable_count("num_key_value_heads", kv_default).value_or(d.heads);
  c.require_divisible("num_attention_heads", d.heads, "num_key_value_heads", d.kv_heads);
  std::optional<std::int64_t> head_dim;
  if (defaults.reads_head_dim)
    head_dim = c.nullable_count("head_dim", defaults.head_dim > 0
                                                ? std::optional<std::int64_t>(defaults.head_dim)
                                                : std::nullopt);
  if (!head_dim) c.require_divisible("hidden_size", d.hidden, "num_attention_heads", d.heads);
  d.head_dim = head_dim.value_or(d.hidden / d.heads);
  if (head_dim && !c.has("head_dim"))
    d.assumed.push_back(fmt::format("head_dim {}: not in the file, the class default", d.head_dim));
  d.rotary_dim = d.head_dim;
  d.vocab = c.count({"vocab_size"}, defaults.vocab);
  d.max_positions = c.count_or_zero("max_position_embeddings", defaults.positions);
  d.tied = c.flag("tie_word_embeddings", defaults.tied);
  d.attention_dropout = c.number("attention_dropout", 0.0);
  d.activation = read_activation(c, defaults.activation_key, defaults.activation);
  return d;
}

std::vector<bool> listed_sliding_layers(const ModelConfig& c, std::int64_t layers) {
  const std::vector<std::string> types = c.texts("layer_types");
  if (!types.empty() && std::ssize(types) != layers)
    c.fail("layer_types", fmt::format("{} entries", types.size()),
           fmt::format("one for each of the {} layers", layers));
  std::vector<bool> sliding;
  for (const std::string& type : types) {
    if (type != "sliding_attention" && type != "full_attention")
      c.fail("layer_types", fmt::format("unknown layer type '{}'", type),
             "sliding_attention or full_attention");
    sliding.push_back(type == "sliding_attention");
  }
  return sliding;
}

std::int64_t partial_rotary_dim(const ModelConfig& c, std::int64_t head_dim, double fallback) {
  std::string key = "partial_rotary_factor";
  for (const char* place :
       {"rope_scaling.partial_rotary_factor", "rope_parameters.partial_rotary_factor"})
    if (c.has(place)) key = place;
  const double factor = c.number(key, fallback);
  if (factor <= 0 || factor > 1)
    c.fail(key, fmt::format("found {}", factor), "more than 0, at most 1");
  return static_cast<std::int64_t>(static_cast<double>(head_dim) * factor);
}

namespace {

/// What layers that slide and layers that do not are given.
struct LayerContexts {
  LayerContext full, sliding;

  LayerContext of(const WindowRun& run) const {
    LayerContext context = run.sliding ? sliding : full;
    context.turned = run.turned;
    return context;
  }
};

LayerContexts share_contexts(ModelBuilder& m, const DecoderDescription& d,
                             const std::vector<WindowRun>& runs) {
  const BuildOptions& options = m.options();
  const bool turns =
      std::any_of(runs.begin(), runs.end(), [](const WindowRun& run) { return run.turned; });
  const auto share_tables = [&] {
    if (!turns) return RotaryTables{};
    return share_rotary(m, d.rotary_dim, options.tables_of_batch ? Scale::tokens : Scale::sequence,
                        is_f32(d.rotary));
  };
  const auto has = [&](bool sliding) {
    return std::any_of(runs.begin(), runs.end(),
                       [&](const WindowRun& run) { return run.sliding == sliding; });
  };
  const bool of_images = options.masked && options.attention == AttentionKind::sdpa;
  LayerContext full{.kind = options.attention};
  if (has(false)) full = {options.attention, 0, share_tables(), share_causal_mask(m, full.kind)};
  LayerContext sliding = full;
  sliding.window = d.window;
  if (has(true)) {
    if (d.tables_by_window || !has(false)) sliding.tables = share_tables();
    sliding.mask = of_images ? kNone : share_window_mask(m, options.attention, d.window);
  }
  if (of_images) full.boolean = sliding.boolean = m.share("image_mask", {1, Scale::scores, 2});
  return {full, sliding};
}

using Predictor = std::pair<TokenPredictor, DecoderLayer>;

/// Layers of further tokens, of the last layer's kind.
std::vector<Predictor> register_predictors(ModelBuilder& m, const DecoderDescription& d,
                                           bool sparse) {
  std::vector<Predictor> predictors;
  for (std::int64_t i = 0; i < m.options().further_tokens; ++i) {
    m.begin_repeat("mtp.layers", 1, i);
    const TokenPredictor own = token_predictor(m, d.hidden, d.norm);
    predictors.emplace_back(own, register_layer(m, d, sparse));
    m.end_repeat();
  }
  return predictors;
}

}  // namespace

Model build_decoder(const DecoderDescription& d, const BuildOptions& options) {
  ModelBuilder m(options);
  m.facts() = {.hidden = d.hidden,
               .layers = d.layers,
               .vocabulary = d.vocab,
               .max_positions = d.max_positions,
               .attention_heads = d.heads,
               .key_value_heads = d.kv_heads,
               .assumed = d.assumed};
  const auto embed = m.embedding("model.embed_tokens", d.vocab, d.hidden);
  EmbeddingModule places{};
  if (d.learned_positions) places = m.embedding("model.embed_positions", d.max_positions, d.hidden);
  std::vector<WindowRun> runs = runs_of(d, options.layers_apart);
  for (WindowRun& run : runs) {
    m.begin_repeat("model.layers", run.count, run.first);
    run.layer = register_layer(m, d, run.sparse);
    m.end_repeat();
  }
  const auto norm = register_norm(m, d.norm, fmt::format("model.{}", d.final_norm), d.hidden);
  const std::vector<Predictor> predictors = register_predictors(m, d, runs.back().sparse);
  const auto head = d.tied ? m.tied_linear("lm_head", embed, d.head_bias)
                           : m.linear("lm_head", d.hidden, d.vocab, d.head_bias);

  add_embedding(m, d, embed, places);
  const LayerContexts contexts = share_contexts(m, d, runs);
  for (const WindowRun& run : runs) {
    Graph& g = m.begin_segment(run.sparse ? "sparse layers" : "layers", run.count, true);
    const ValueId x = g.chained_input({d.hidden, Scale::tokens});
    g.set_output(layer_output(g, d, run.layer, contexts.of(run), x));
  }
  std::int64_t further = 0;
  for (const Predictor& own : predictors)
    add_prediction(m, own.first, embed, d.norm, norm, further++, [&](Graph& g, ValueId x) {
      return layer_output(g, d, own.second, contexts.of(runs.back()), x);
    });

  Graph& h = m.begin_segment("head");
  const ValueId last = h.chained_input({d.hidden * (1 + further), Scale::tokens});
  h.set_output(further > 0
                   ? predicted_losses(h, head, last, d.hidden, further, d.logits)
                   : language_model_loss(h, head, normalize(h, d.norm, norm, last), d.logits));
  return m.build();
}

}  // namespace shardplan
