// The text model of Llama 4 (models/llama4, model_type "llama4_text"): positions as complex numbers
// in most layers, experts in some.
#include <algorithm>
#include <string>
#include <vector>

#include "model/architectures/architectures.h"
#include "model/layers/convolution.h"
#include "model/layers/decoder_stack.h"
#include "model/layers/experts.h"

namespace shardplan {
namespace {

/// Kinds of layers; bits.
enum Llama4Layer { kMixes = 1, kTurns = 2 };

struct Llama4 {
  std::int64_t hidden, layers, ffn, dense_ffn, experts, top_k, chunk;
  AttentionShape shape;
  bool bias, normalizes, tuned;
  Activation activation;
  std::vector<int> kinds;  ///< by layer
};

struct Llama4Modules {
  LinearModule q, k, v, o, router;
  ParameterId gate_up = kNone, down = kNone;
  ModuleId experts = kNone;
  GatedMlp mlp;  ///< beside the experts, or in their place
  NormModule before, after;
};

std::vector<int> read_llama4_kinds(const ModelConfig& c, std::int64_t layers) {
  const std::int64_t step = c.count({"interleave_moe_layer_step"}, 1);
  const std::int64_t interval = c.count({"no_rope_layer_interval"}, 4);
  const std::vector<std::int64_t> mixing = c.counts("moe_layers");
  std::vector<std::int64_t> turning = c.counts("no_rope_layers");
  if (!turning.empty() && std::ssize(turning) != layers)
    c.fail("no_rope_layers", "not one entry for each layer", "one for each layer");
  std::vector<int> kinds;
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool mixes = c.is_list("moe_layers")
                           ? std::find(mixing.begin(), mixing.end(), i) != mixing.end()
                           : (i + 1) % step == 0;
    const bool turns =
        turning.empty() ? (i + 1) % interval != 0 : turning[static_cast<std::size_t>(i)] != 0;
    kinds.push_back((mixes ? kMixes : 0) + (turns ? kTurns : 0));
  }
  return kinds;
}

Llama4 read_llama4(const ModelConfig& c) {
  Llama4 t{};
  t.hidden = c.count({"hidden_size"}, 5120);
  t.layers = c.count({"num_hidden_layers"}, 48);
  t.shape.heads = c.count({"num_attention_heads"}, 40);
  t.shape.kv_heads = c.nullable_count("num_key_value_heads", 8).value_or(t.shape.heads);
  t.shape.head_dim = c.nullable_count("head_dim", 128).value_or(t.hidden / t.shape.heads);
  t.shape.dropout = c.number("attention_dropout", 0.0);
  t.shape.softmax_f32 = false;
  c.require_divisible("num_attention_heads", t.shape.heads, "num_key_value_heads",
                      t.shape.kv_heads);
  t.ffn = c.count({"intermediate_size"}, 8192);
  t.dense_ffn = c.count({"intermediate_size_mlp"}, 16384);
  t.experts = c.count({"num_local_experts"}, 16);
  t.top_k = experts_per_token(c, "num_experts_per_tok", 1, t.experts);
  t.chunk = c.nullable_count("attention_chunk_size", 8192).value_or(0);
  t.bias = c.flag("attention_bias", false);
  t.normalizes = c.flag("use_qk_norm", true);
  t.tuned = c.flag("attn_temperature_tuning", true);
  t.activation = read_activation(c, "hidden_act", "silu");
  t.kinds = read_llama4_kinds(c, t.layers);
  return t;
}

Llama4Modules declare_llama4(ModelBuilder& m, const Llama4& t, int kind) {
  Llama4Modules l;
  const std::int64_t width = t.shape.heads * t.shape.head_dim;
  const std::int64_t grouped = t.shape.kv_heads * t.shape.head_dim;
  l.q = m.linear("self_attn.q_proj", t.hidden, width, t.bias);
  l.k = m.linear("self_attn.k_proj", t.hidden, grouped, t.bias);
  l.v = m.linear("self_attn.v_proj", t.hidden, grouped, t.bias);
  l.o = m.linear("self_attn.o_proj", width, t.hidden, t.bias);
  if ((kind & kMixes) != 0) {
    const std::string at = "feed_forward.";
    l.gate_up = m.tensor(at + "experts.gate_up_proj", {t.experts, t.hidden, 2 * t.ffn},
                         ParameterKind::expert);
    l.down =
        m.tensor(at + "experts.down_proj", {t.experts, t.ffn, t.hidden}, ParameterKind::expert);
    l.experts = m.owner(l.gate_up);
    l.router = router(m, at + "router", t.hidden, t.experts, false, RouterIs::linear);
    l.mlp = gated_mlp(m, at + "shared_expert", t.hidden, t.ffn);
  } else {
    l.mlp = gated_mlp(m, "feed_forward", t.hidden, t.dense_ffn);
  }
  l.before = m.rms_norm("input_layernorm", t.hidden);
  l.after = m.rms_norm("post_attention_layernorm", t.hidden);
  return l;
}

/// What layers of one kind of attention are given; numbers in Model::shared.
struct Llama4Context {
  AttentionKind kind = AttentionKind::sdpa;
  AttentionShape shape;
  std::int32_t table = kNone;  ///< complex numbers; where heads are turned
};

/// Llama4TextL2Norm: no weight.
ValueId unit_heads(Graph& g, ValueId x, std::int64_t head_dim) {
  const ValueId wide = g.map(OpKind::to_f32, x);
  const Extent row{per(g, x) / head_dim, g.value(x).extent.scale};
  const ValueId mean = g.op({OpKind::mean, {g.map(OpKind::power, wide), kNone, kNone}}, row);
  const ValueId inverse = g.map(OpKind::rsqrt, g.map(OpKind::scalar, mean));
  return g.map(OpKind::to_like, g.map(OpKind::mul, wide, inverse), x);
}

/// Queries times an fp32 number of each position.
ValueId tuned(Graph& g, ValueId q) {
  Op positions{OpKind::copy, {q, kNone, kNone}};
  positions.detached = true;
  const ValueId factor = g.map(OpKind::to_f32, g.op(positions, {1, Scale::sequence}));
  return g.map(OpKind::to_like, g.map(OpKind::mul, q, factor), q);
}

ValueId llama4_attention(Graph& g, const Llama4& t, const Llama4Modules& l,
                         const Llama4Context& context, ValueId x) {
  ValueId q = apply(g, l.q, x), k = apply(g, l.k, x);
  const ValueId v = apply(g, l.v, x);
  if (context.table != kNone) {
    const ValueId table = g.shared_input(context.table, {t.shape.head_dim, Scale::sequence});
    rotate_complex(g, q, k, table);
  }
  if (context.table != kNone && t.normalizes) {
    q = unit_heads(g, q, t.shape.head_dim);
    k = unit_heads(g, k, t.shape.head_dim);
  }
  if (context.table == kNone && t.tuned) q = tuned(g, q);
  return apply(g, l.o, attention(g, context.kind, context.shape, q, k, v));
}

/// Every expert computes every token, times its score, which is nought where it was not chosen
/// (Llama4TextMoe): the rows of all experts are kept.
ValueId llama4_experts(Graph& g, const Llama4& t, const Llama4Modules& l, ValueId x) {
  const ValueId logits = apply(g, l.router, x);
  const ValueId scattered = g.map(OpKind::scalar, choose(g, logits, t.top_k));
  const ValueId all = g.op({OpKind::copy, {scattered, kNone, kNone}}, g.value(logits).extent);
  const ValueId scores = g.map(OpKind::sigmoid, g.map(OpKind::to_f32, all));
  const Extent rows{checked_mul(t.experts, t.hidden), Scale::tokens};
  const ValueId repeated = g.op({OpKind::copy, {x, kNone, kNone}}, rows);
  const ValueId weights = g.map(OpKind::copy, g.map(OpKind::to_like, scores, x));
  const ValueId routed = g.map(OpKind::mul, repeated, weights);
  const auto product = [&](ValueId in, ParameterId weight, std::int64_t width, std::int64_t out) {
    Op op{OpKind::linear, {in, kNone, kNone}};
    op.module = l.experts;
    op.weight = weight;
    op.work = {checked_mul(checked_mul(t.experts, width), out), Scale::tokens};
    return g.op(op, {checked_mul(t.experts, out), Scale::tokens});
  };
  const ValueId both = product(routed, l.gate_up, t.hidden, 2 * t.ffn);
  const std::int64_t half = checked_mul(t.experts, t.ffn);
  const ValueId gate = activate(g, t.activation, slice(g, both, half));
  const ValueId inner = g.map(OpKind::mul, slice(g, both, half), gate);
  const ValueId out = product(inner, l.down, t.ffn, t.hidden);
  const ValueId shared = gated_mlp(g, l.mlp, t.activation, x);
  const ValueId sum = g.op({OpKind::mean, {out, kNone, kNone}}, {t.hidden, Scale::tokens});
  const ValueId result = g.map(OpKind::add, shared, sum);
  for (const ValueId local : {logits, routed, out}) g.hold(local, result);
  return result;
}

void llama4_layer(Graph& g, const Llama4& t, const Llama4Modules& l, const Llama4Context& context) {
  const ValueId x = g.chained_input({t.hidden, Scale::tokens});
  const ValueId mixed = llama4_attention(g, t, l, context, rms_norm(g, l.before, x));
  const ValueId middle = g.map(OpKind::add, x, mixed);
  const ValueId normal = rms_norm(g, l.after, middle);
  const ValueId fed = l.experts != kNone ? llama4_experts(g, t, l, normal)
                                         : gated_mlp(g, l.mlp, t.activation, normal);
  g.set_output(g.map(OpKind::add, middle, fed));
}

}  // namespace

Model build_llama4_text(const ModelConfig& c, const BuildOptions& options) {
  const Llama4 t = read_llama4(c);
  require_training(c, options, "experts that all compute every token");
  const std::int64_t vocab = c.count({"vocab_size"}, 202048);
  ModelBuilder m(options);
  m.facts() = {.hidden = t.hidden,
               .layers = t.layers,
               .vocabulary = vocab,
               .max_positions = c.count_or_zero("max_position_embeddings", 131072),
               .attention_heads = t.shape.heads,
               .key_value_heads = t.shape.kv_heads,
               .undivided = true,
               .supports_flash_attn = false};
  note_router_loss(m, c);
  const auto words = m.embedding("model.embed_tokens", vocab, t.hidden);
  const std::vector<LayerRun> runs =
      layer_runs(t.layers, [&](std::int64_t i) { return t.kinds[static_cast<std::size_t>(i)]; });
  std::vector<Llama4Modules> layers;
  for (const LayerRun& run : runs) {
    m.begin_repeat("model.layers", run.count, run.start);
    layers.push_back(declare_llama4(m, t, run.kind));
    m.end_repeat();
  }
  const auto norm = m.rms_norm("model.norm", t.hidden);
  const auto head = c.flag("tie_word_embeddings", false) ? m.tied_linear("lm_head", words)
                                                         : m.linear("lm_head", t.hidden, vocab);
  Graph& e = m.begin_segment("embedding");
  e.set_output(apply(e, words, Scale::tokens));
  Llama4Context straight{options.attention, t.shape};
  straight.shape.mask = share_causal_mask(m, options.attention);
  Llama4Context turned = straight;
  turned.shape.window = t.chunk;
  if (t.chunk > 0) turned.shape.mask = share_window_mask(m, options.attention, t.chunk);
  turned.table = m.share("complex positions", {t.shape.head_dim, Scale::sequence}, true);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool mixes = (runs[i].kind & kMixes) != 0, turns = (runs[i].kind & kTurns) != 0;
    Graph& g = m.begin_segment(mixes ? "sparse layers" : "layers", runs[i].count, true);
    llama4_layer(g, t, layers[i], turns ? turned : straight);
  }
  Graph& h = m.begin_segment("head");
  const ValueId last = h.chained_input({t.hidden, Scale::tokens});
  h.set_output(language_model_loss(h, head, rms_norm(h, norm, last)));
  return m.build();
}

}  // namespace shardplan
