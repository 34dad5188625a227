// The text model of Gemma 4 (models/gemma4, model_type "gemma4_text"): Gemma 3 with heads of
// another width in layers that see everything, keys and values that later layers take over, an
// embedding of its own for every layer, and in one checkpoint experts beside each MLP. The text
// model of the 12B (models/gemma4_unified, "gemma4_unified_text") has neither of the last two.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"
#include "model/architectures/gemma4.h"
#include "model/layers/convolution.h"
#include "model/layers/decoder_stack.h"
#include "model/layers/experts.h"

namespace shardplan {
namespace {

/// Kinds of layers; bits.
enum Gemma4Layer {
  kSees = 1,     ///< all tokens, not a window
  kBorrows = 2,  ///< keys and values of an earlier layer
  kLends = 4,    ///< its own to later ones, or would if there were any that borrow
};

struct Gemma4 {
  std::int64_t hidden, ffn, layers, heads, vocab, window;
  std::int64_t kv_heads, wide_kv_heads, head_dim, wide_head_dim;  ///< wide: where all is seen
  std::int64_t each = 0, each_vocab = 0;  ///< of the embedding for every layer
  std::int64_t experts = 0, top_k = 0, expert_ffn = 0;
  bool bias, one_for_both, double_wide, softcap, tied;
  bool masked, masks_all;  ///< sliding layers, or all, are given a mask whatever the length
  double dropout;
  Activation activation;
  std::vector<int> kinds;  ///< by layer
};

struct Gemma4Attention {
  LinearModule q, o;
  std::optional<LinearModule> k, v;
  NormModule q_norm, k_norm;
};

struct Gemma4Experts {
  ParameterId scale, each_scale;
  LinearModule router;
  Experts experts;
  NormModule after_mlp, after_experts, before_experts;
};

struct Gemma4Modules {
  Gemma4Attention attention;
  GatedMlp mlp;
  NormModule before, after, before_mlp, after_mlp, after_each;
  LinearModule gate_each, project_each;
  std::optional<Gemma4Experts> sparse;
};

std::vector<int> read_kinds(const ModelConfig& c, std::int64_t layers) {
  std::vector<bool> sliding =
      sliding_layers(c, layers, [](std::int64_t i) { return (i + 1) % 6 != 0; });
  sliding.back() = false;
  const std::int64_t first = layers - c.count_or_zero("num_kv_shared_layers", 0);
  std::vector<int> kinds;
  for (std::int64_t i = 0; i < layers; ++i)
    kinds.push_back((sliding[static_cast<std::size_t>(i)] ? 0 : kSees) +
                    (i >= first ? kBorrows : 0));
  for (const int sees : {0, +kSees})
    for (std::int64_t i = first; i-- > 0;)
      if (kinds[static_cast<std::size_t>(i)] == sees) {
        kinds[static_cast<std::size_t>(i)] += kLends;
        break;
      }
  return kinds;
}

/// `unified`: the class of the 12B.
Gemma4 read_gemma4(const ModelConfig& c, const BuildOptions& options, bool unified) {
  Gemma4 t{};
  t.hidden = c.count({"hidden_size"}, 2304);
  t.ffn = c.count({"intermediate_size"}, 9216);
  t.layers = c.count({"num_hidden_layers"}, 30);
  t.heads = c.count({"num_attention_heads"}, 8);
  t.kv_heads = c.count({"num_key_value_heads"}, 4);
  t.head_dim = c.count({"head_dim"}, 256);
  t.wide_head_dim = c.count({"global_head_dim"}, 512);
  t.one_for_both = c.flag("attention_k_eq_v", false);
  t.wide_kv_heads =
      t.one_for_both
          ? c.nullable_count("num_global_key_value_heads", std::nullopt).value_or(t.kv_heads)
          : t.kv_heads;
  for (const std::int64_t kv : {t.kv_heads, t.wide_kv_heads})
    c.require_divisible("num_attention_heads", t.heads, "num_key_value_heads", kv);
  if (c.entries("per_layer_config") > 0)
    c.fail("per_layer_config", "layers that differ otherwise are not supported",
           "global_head_dim and num_global_key_value_heads");
  t.vocab = c.count({"vocab_size"}, 262144);
  t.window = c.count({"sliding_window"}, unified ? 1024 : 512);
  t.each = unified ? 0 : c.count_or_zero("hidden_size_per_layer_input", 256);
  t.each_vocab = c.count({"vocab_size_per_layer_input"}, 262144);
  t.bias = c.flag("attention_bias", false);
  t.double_wide = c.flag("use_double_wide_mlp", false);
  t.softcap = c.number("final_logit_softcapping", 0) > 0;
  t.tied = c.flag("tie_word_embeddings", true);
  t.dropout = c.number("attention_dropout", 0.0);
  t.activation = read_activation(c, "hidden_activation", "gelu_pytorch_tanh");
  t.masked = options.masked;
  t.masks_all = options.masked && unified;
  t.kinds = read_kinds(c, t.layers);
  if (c.text("use_bidirectional_attention", "") == "all" && !options.counts_only)
    c.fail("use_bidirectional_attention", "attention of all tokens to all is not described",
           "vision, or null");
  if (unified || !c.flag("enable_moe_block", false)) return t;
  t.experts = c.count({"num_experts"}, 0);
  t.top_k = experts_per_token(c, "top_k_experts", 8, t.experts);
  t.expert_ffn = c.count({"moe_intermediate_size"}, 0);
  return t;
}

Gemma4Experts declare_gemma4_experts(ModelBuilder& m, const Gemma4& t) {
  Gemma4Experts e;
  e.scale = m.tensor("router.scale", {t.hidden}, ParameterKind::other);
  e.each_scale = m.tensor("router.per_expert_scale", {t.experts}, ParameterKind::other);
  e.router = m.linear("router.proj", t.hidden, t.experts);
  e.experts = experts(m, "experts", t.experts, t.hidden, t.expert_ffn);
  e.after_mlp = m.rms_norm("post_feedforward_layernorm_1", t.hidden);
  e.after_experts = m.rms_norm("post_feedforward_layernorm_2", t.hidden);
  e.before_experts = m.rms_norm("pre_feedforward_layernorm_2", t.hidden);
  return e;
}

Gemma4Modules declare_gemma4(ModelBuilder& m, const Gemma4& t, int kind) {
  Gemma4Modules l;
  const bool sees = (kind & kSees) != 0, borrows = (kind & kBorrows) != 0;
  const std::int64_t dim = sees ? t.wide_head_dim : t.head_dim;
  const std::int64_t grouped = checked_mul(dim, sees ? t.wide_kv_heads : t.kv_heads);
  const std::int64_t width = checked_mul(dim, t.heads);
  Gemma4Attention& a = l.attention;
  a.q = m.linear("self_attn.q_proj", t.hidden, width, t.bias);
  a.q_norm = m.rms_norm("self_attn.q_norm", dim);
  if (!borrows) {
    a.k_norm = m.rms_norm("self_attn.k_norm", dim);
    a.k = m.linear("self_attn.k_proj", t.hidden, grouped, t.bias);
    if (!sees || !t.one_for_both) a.v = m.linear("self_attn.v_proj", t.hidden, grouped, t.bias);
  }
  a.o = m.linear("self_attn.o_proj", width, t.hidden, t.bias);
  l.mlp = gated_mlp(m, "mlp", t.hidden, t.ffn * (borrows && t.double_wide ? 2 : 1));
  l.before = m.rms_norm("input_layernorm", t.hidden);
  l.after = m.rms_norm("post_attention_layernorm", t.hidden);
  l.before_mlp = m.rms_norm("pre_feedforward_layernorm", t.hidden);
  l.after_mlp = m.rms_norm("post_feedforward_layernorm", t.hidden);
  if (t.each > 0) {
    l.gate_each = m.linear("per_layer_input_gate", t.hidden, t.each);
    l.project_each = m.linear("per_layer_projection", t.each, t.hidden);
    l.after_each = m.rms_norm("post_per_layer_input_norm", t.hidden);
  }
  if (t.experts > 0) l.sparse = declare_gemma4_experts(m, t);
  return l;
}

/// What layers of one kind of attention are given; numbers in Model::shared.
struct Gemma4Context {
  AttentionKind kind = AttentionKind::sdpa;
  AttentionShape shape;
  RotaryTables tables;
  std::int32_t keys = kNone, values = kNone;  ///< of the layer that lends them
  std::int32_t boolean = kNone;               ///< a mask of images, whatever the length
  std::int32_t each = kNone;                  ///< embeddings of all layers
};

ValueId gemma4_attention(Graph& g, const Gemma4Attention& a, bool lends,
                         const Gemma4Context& context, ValueId x) {
  const AttentionShape& s = context.shape;
  const ValueId q =
      rotate(g, context.tables, gemma4_norm(g, a.q_norm, apply(g, a.q, x)), s.heads, s.head_dim);
  if (context.boolean != kNone) g.shared_input(context.boolean, {1, Scale::scores, 2});
  if (!a.k) {
    const Extent grouped{s.kv_heads * s.head_dim, Scale::tokens};
    const ValueId k = g.shared_input(context.keys, grouped);
    const ValueId v = g.shared_input(context.values, grouped);
    return apply(g, a.o, attention(g, context.kind, s, q, k, v));
  }
  const ValueId straight = apply(g, *a.k, x);
  const ValueId plain = a.v ? apply(g, *a.v, x) : straight;
  const ValueId k =
      rotate(g, context.tables, gemma4_norm(g, a.k_norm, straight), s.kv_heads, s.head_dim);
  const ValueId v = gemma4_norm(g, plain, s.head_dim);
  for (const ValueId lent : {k, v})
    if (lends) g.lend(lent);
  return apply(g, a.o, attention(g, context.kind, s, q, k, v));
}

/// Router and experts read what the MLP's norm reads (Gemma4TextRouter).
ValueId gemma4_experts(Graph& g, const Gemma4& t, const Gemma4Experts& e, ValueId x, ValueId fed) {
  const ValueId first = gemma4_norm(g, e.after_mlp, fed);
  const auto parameter = [&](ParameterId id, ModuleId module, std::int64_t size) {
    Op op{OpKind::parameter};
    op.module = module;
    op.weight = id;
    return g.op(op, {size, Scale::one});
  };
  const ValueId scale = parameter(e.scale, e.router.module, t.hidden);
  const ValueId routed =
      g.map(OpKind::scalar, g.map(OpKind::mul, gemma4_norm(g, x, t.hidden), scale));
  const Routing routing = softmax_routing(g, e.router, t.top_k, true, routed);
  const ValueId each = parameter(e.each_scale, e.router.module, t.experts);
  const ValueId chosen =
      g.op({OpKind::copy, {each, kNone, kNone}}, g.value(routing.weights).extent);
  const ValueId weights = g.map(OpKind::mul, routing.weights, chosen);
  const ValueId mixed = apply(g, e.experts, ExpertGate::activation, t.activation,
                              gemma4_norm(g, e.before_experts, x), weights);
  g.hold(routing.logits, mixed);
  return g.map(OpKind::add, first, gemma4_norm(g, e.after_experts, mixed));
}

void gemma4_layer(Graph& g, const Gemma4& t, const Gemma4Modules& l, bool lends,
                  const Gemma4Context& context) {
  const ValueId x = g.chained_input({t.hidden, Scale::tokens});
  const ValueId mixed =
      gemma4_attention(g, l.attention, lends, context, gemma4_norm(g, l.before, x));
  const ValueId middle = g.map(OpKind::add, x, gemma4_norm(g, l.after, mixed));
  ValueId fed = gated_mlp(g, l.mlp, t.activation, gemma4_norm(g, l.before_mlp, middle));
  if (l.sparse) fed = gemma4_experts(g, t, *l.sparse, middle, fed);
  const ValueId out = g.map(OpKind::add, middle, gemma4_norm(g, l.after_mlp, fed));
  if (context.each == kNone) return g.set_output(out);
  const ValueId all = g.shared_input(context.each, {t.layers * t.each, Scale::tokens});
  const ValueId gate = activate(g, t.activation, apply(g, l.gate_each, out));
  const ValueId gated = g.map(OpKind::mul, gate, slice(g, all, t.each));
  const ValueId own = gemma4_norm(g, l.after_each, apply(g, l.project_each, gated));
  g.set_output(g.map(OpKind::add, out, own));
}

struct EachLayer {
  EmbeddingModule words;
  LinearModule projection;
  NormModule norm;
};

/// The embeddings of every layer, of the tokens and of what they look up: a segment of its own,
/// whose gradient gathers from all layers. The words are looked up again for it.
std::int32_t embed_each(ModelBuilder& m, const Gemma4& t, const EachLayer& each,
                        const EmbeddingModule& words) {
  if (t.each == 0) return kNone;
  Graph& g = m.begin_segment("embeddings of layers");
  const ValueId own = apply_scaled(g, each.words, Scale::tokens);
  const ValueId tokens = apply_scaled(g, words, Scale::tokens);
  const ValueId projected = g.map(OpKind::scalar, apply(g, each.projection, tokens));
  const ValueId sum = g.map(OpKind::add, gemma4_norm(g, each.norm, projected), own);
  g.set_output(g.map(OpKind::scalar, sum));
  return m.share_output("embeddings of layers", {t.layers * t.each, Scale::tokens});
}

/// One for layers with a window, one for those that see all tokens.
Gemma4Context gemma4_context(ModelBuilder& m, const Gemma4& t, bool sees) {
  Gemma4Context context;
  context.kind = m.options().attention;
  const bool of_images = (sees ? t.masks_all : t.masked) && context.kind == AttentionKind::sdpa;
  const std::int64_t dim = sees ? t.wide_head_dim : t.head_dim;
  const std::int64_t window = sees ? 0 : t.window;
  context.shape = {.heads = t.heads,
                   .kv_heads = sees ? t.wide_kv_heads : t.kv_heads,
                   .head_dim = dim,
                   .dropout = t.dropout,
                   .window = window,
                   .mask = share_window_mask(m, context.kind, of_images ? 0 : window)};
  context.tables = share_rotary(m, dim);
  if (of_images) {
    context.boolean = m.share("image_mask", {1, Scale::scores, 2});
    context.shape.window = 1;
  }
  return context;
}

}  // namespace

ValueId gemma4_norm(Graph& g, ValueId x, std::int64_t width, const NormModule* m) {
  const ValueId wide = g.map(OpKind::to_f32, x);
  const Extent row{per(g, x) / width, g.value(x).extent.scale};
  const ValueId mean = g.op({OpKind::mean, {g.map(OpKind::power, wide), kNone, kNone}}, row);
  const ValueId root = g.map(OpKind::power, g.map(OpKind::scalar, mean));
  ValueId normal = g.map(OpKind::mul, wide, root);
  g.hold(wide, normal);
  if (m != nullptr) {
    Op weight{OpKind::parameter};
    weight.module = m->module;
    weight.weight = m->weight;
    const ValueId factor = g.map(OpKind::to_f32, g.op(weight, {width, Scale::one}));
    normal = g.map(OpKind::mul, normal, factor);
  }
  return g.map(OpKind::to_like, normal, x);
}

ValueId gemma4_norm(Graph& g, const NormModule& m, ValueId x) {
  return gemma4_norm(g, x, m.width, &m);
}

namespace {

ModelFacts gemma4_facts(const ModelConfig& c, const Gemma4& t, bool unified) {
  return {.hidden = t.hidden,
          .layers = t.layers,
          .vocabulary = t.vocab,
          .max_positions = c.count_or_zero("max_position_embeddings", unified ? 262144 : 131072),
          .attention_heads = t.heads,
          .key_value_heads = std::min(t.kv_heads, t.wide_kv_heads),
          .undivided = true,
          .cut_by_name = t.experts == 0,
          .own_ring = true,
          .lends = t.each > 0 || c.count_or_zero("num_kv_shared_layers", 0) > 0};
}

Model build_gemma4_layers(const ModelConfig& c, const BuildOptions& options, bool unified) {
  const Gemma4 t = read_gemma4(c, options, unified);
  require_training(c, options, "layers that share keys and values");
  ModelBuilder m(options);
  m.facts() = gemma4_facts(c, t, unified);
  const auto words = m.embedding("model.embed_tokens", t.vocab, t.hidden);
  const std::vector<LayerRun> runs =
      layer_runs(t.layers, [&](std::int64_t i) { return t.kinds[static_cast<std::size_t>(i)]; });
  std::vector<Gemma4Modules> layers;
  for (const LayerRun& run : runs) {
    m.begin_repeat("model.layers", run.count, run.start);
    layers.push_back(declare_gemma4(m, t, run.kind));
    m.end_repeat();
  }
  const auto norm = m.rms_norm("model.norm", t.hidden);
  EachLayer each;
  if (t.each > 0) {
    const std::int64_t all = checked_mul(t.layers, t.each);
    each.words = m.embedding("model.embed_tokens_per_layer", t.each_vocab, all);
    m.set_like_blocks(true);
    each.projection = m.linear("model.per_layer_model_projection", t.hidden, all);
    m.set_like_blocks(false);
    each.norm = m.rms_norm("model.per_layer_projection_norm", t.each);
  }
  const auto head =
      t.tied ? m.tied_linear("lm_head", words) : m.linear("lm_head", t.hidden, t.vocab);

  const std::int32_t embedded = embed_each(m, t, each, words);
  Graph& e = m.begin_segment("embedding");
  // Within the 12B places of images and sounds are looked up as padding: indices made of the input.
  const Extent made = unified && options.inside ? Extent{1, Scale::tokens} : Extent{};
  e.set_output(apply_scaled(e, words, Scale::tokens, made));
  std::array<Gemma4Context, 2> contexts{gemma4_context(m, t, false), gemma4_context(m, t, true)};
  const bool borrowed =
      std::any_of(t.kinds.begin(), t.kinds.end(), [](int kind) { return (kind & kBorrows) != 0; });
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Gemma4Context& context = contexts[(runs[i].kind & kSees) != 0 ? 1 : 0];
    context.each = embedded;
    Graph& g = m.begin_segment(t.experts > 0 ? "sparse layers" : "layers", runs[i].count, true);
    const bool lends = (runs[i].kind & kLends) != 0;
    gemma4_layer(g, t, layers[i], lends, context);
    if (!lends || !borrowed) continue;
    // Named until the last layer has read them, beside what attention keeps of them.
    const Extent grouped{context.shape.kv_heads * context.shape.head_dim, Scale::tokens};
    context.keys = m.share_trained("lent keys", grouped);
    context.values = m.share_trained("lent values", grouped);
  }
  Graph& h = m.begin_segment("head");
  const ValueId last = h.chained_input({t.hidden, Scale::tokens});
  h.set_output(language_model_loss(h, head, gemma4_norm(h, norm, last),
                                   t.softcap ? LogitMap::softcap : LogitMap::none));
  return m.build();
}

}  // namespace

Model build_gemma4_text(const ModelConfig& c, const BuildOptions& options) {
  return build_gemma4_layers(c, options, false);
}

Model build_gemma4_unified_text(const ModelConfig& c, const BuildOptions& options) {
  return build_gemma4_layers(c, options, true);
}

}  // namespace shardplan
