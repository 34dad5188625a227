// Qwen 3-Next (models/qwen3_next) and the text models of Qwen 3.5 (models/qwen3_5, qwen3_5_moe):
// three of four layers with a gated delta net in place of attention, whose result is gated too.
#include <optional>

#include "model/architectures/architectures.h"
#include "model/architectures/decoder.h"
#include "model/layers/decoder_stack.h"
#include "model/layers/delta_net.h"
#include "model/layers/experts.h"
#include "model/layers/megatron_delta_net.h"
#include "model/layers/mlp.h"
#include "model/layers/scan_kernels.h"

namespace shardplan {
namespace {

constexpr std::string_view kDeltaNets = "gated delta nets";

struct NextShape {
  std::int64_t hidden = 0, ffn = 0, layers = 0, vocab = 0;
  std::int64_t experts = 0, top_k = 0, expert_ffn = 0, shared_ffn = 0;
  std::int64_t rotary_dim = 0;
  bool bias = false, tied = false, normalize = true, tables_of_batch = false;
  AttentionShape attention;
  DeltaNetShape delta;
  Activation activation = Activation::silu;
};

struct NextLayer {
  std::optional<DeltaNet> delta;
  LinearModule q, k, v, out;  ///< the queries' projection makes the gate too
  NormModule q_norm, k_norm, before, after;
  LinearModule router, shared_gate;
  Experts experts;
  GatedMlp mlp;  ///< the shared expert of a sparse layer, or the dense block
};

NextLayer declare_next(ModelBuilder& m, const NextShape& s, int kind) {
  NextLayer l;
  const AttentionShape& a = s.attention;
  if ((kind & kAttendingLayer) != 0) {
    l.q = m.linear("self_attn.q_proj", s.hidden, 2 * a.heads * a.head_dim, s.bias);
    l.k = m.linear("self_attn.k_proj", s.hidden, a.kv_heads * a.head_dim, s.bias);
    l.v = m.linear("self_attn.v_proj", s.hidden, a.kv_heads * a.head_dim, s.bias);
    l.out = m.linear("self_attn.o_proj", a.heads * a.head_dim, s.hidden, s.bias);
    l.q_norm = m.rms_norm("self_attn.q_norm", a.head_dim);
    l.k_norm = m.rms_norm("self_attn.k_norm", a.head_dim);
  } else {
    l.delta = delta_net(m, s.delta);
  }
  if ((kind & kSparseLayer) != 0) {
    l.router = router(m, "mlp.gate", s.hidden, s.experts);
    l.experts = experts(m, "mlp.experts", s.experts, s.hidden, s.expert_ffn);
    l.mlp = gated_mlp(m, "mlp.shared_expert", s.hidden, s.shared_ffn);
    l.shared_gate = m.linear("mlp.shared_expert_gate", s.hidden, 1);
  } else {
    l.mlp = gated_mlp(m, "mlp", s.hidden, s.ffn);
  }
  l.before = m.rms_norm("input_layernorm", s.hidden);
  l.after = m.rms_norm("post_attention_layernorm", s.hidden);
  return l;
}

ValueId next_attention(Graph& g, const NextLayer& l, const NextShape& s, AttentionKind kind,
                       const Positions& at, ValueId x) {
  AttentionShape a = s.attention;
  a.mask = at.mask;
  a.heads_first = true;
  const std::int64_t width = a.heads * a.head_dim;
  const ValueId both = apply(g, l.q, x);
  const ValueId gate = g.op({OpKind::copy, {both, kNone, kNone}}, {width, Scale::tokens});
  Rotation turn = rotation(g, at.tables);
  turn.always_cat = true;
  ValueId q = normalize(g, NormKind::gemma, l.q_norm, slice(g, both, width));
  ValueId k = normalize(g, NormKind::gemma, l.k_norm, apply(g, l.k, x));
  const ValueId v = apply(g, l.v, x);
  rotate_both(g, turn, q, a.heads, k, a.kv_heads, a.head_dim);
  const ValueId mixed = attention(g, kind, a, q, k, v);
  return apply(g, l.out, g.map(OpKind::mul, mixed, g.map(OpKind::sigmoid, gate)));
}

ValueId next_mlp(Graph& g, const NextLayer& l, const NextShape& s, bool sparse, ValueId x) {
  const ValueId shared = gated_mlp(g, l.mlp, s.activation, x);
  if (!sparse) return shared;
  const Routing routing = softmax_routing(g, l.router, s.top_k, s.normalize, x);
  const ValueId weights = g.map(OpKind::to_like, routing.weights, routing.logits);
  const ValueId chosen = apply(g, l.experts, ExpertGate::activation, s.activation, x, weights);
  g.hold(routing.logits, chosen);
  const ValueId open = g.map(OpKind::sigmoid, apply(g, l.shared_gate, x));
  return g.map(OpKind::add, chosen, g.map(OpKind::mul, shared, open));
}

/// The attention or the delta net over the norm of x.
ValueId mix(Graph& g, const ModelBuilder& m, const NextLayer& l, const NextShape& s,
            const Positions& at, ValueId x) {
  if (l.delta && g.fuses()) return apply_in_megatron(g, m, *l.delta, l.before, x);
  const ValueId normal = normalize(g, NormKind::gemma, l.before, x);
  return l.delta ? apply(g, m, *l.delta, normal)
                 : next_attention(g, l, s, m.options().attention, at, normal);
}

/// Which layers attend: "layer_types", or every n-th.
std::vector<bool> attending_layers(const ModelConfig& c, std::int64_t layers) {
  std::vector<bool> full;
  const std::vector<std::string> types = c.texts("layer_types");
  if (!types.empty() && std::ssize(types) != layers)
    c.fail("layer_types", "not one entry for each layer", "one for each layer");
  const std::int64_t interval = c.count({"full_attention_interval"}, 4);
  for (std::int64_t i = 0; i < layers; ++i)
    full.push_back(types.empty() ? (i + 1) % interval == 0
                                 : types[static_cast<std::size_t>(i)] == "full_attention");
  return full;
}

struct NextDefaults {
  std::int64_t hidden, ffn, layers, heads, kv_heads, vocab, experts, top_k;
};

NextShape read_next(const ModelConfig& c, const BuildOptions& options, const NextDefaults& d) {
  NextShape s;
  s.hidden = c.count({"hidden_size"}, d.hidden);
  s.ffn = c.count({"intermediate_size"}, d.ffn);
  s.layers = c.count({"num_hidden_layers"}, d.layers);
  s.vocab = c.count({"vocab_size"}, d.vocab);
  s.attention.heads = c.count({"num_attention_heads"}, d.heads);
  s.attention.kv_heads = c.count({"num_key_value_heads"}, d.kv_heads);
  s.attention.head_dim = c.count({"head_dim"}, 256);
  s.attention.dropout = c.number("attention_dropout", 0.0);
  c.require_divisible("num_attention_heads", s.attention.heads, "num_key_value_heads",
                      s.attention.kv_heads);
  s.rotary_dim = partial_rotary_dim(c, s.attention.head_dim, 0.25);
  s.bias = c.flag("attention_bias", false);
  s.tied = c.flag("tie_word_embeddings", false);
  s.activation = read_activation(c, "hidden_act", "silu");
  s.delta = read_delta_net(c, s.hidden);
  if (d.experts == 0) return s;
  s.experts = c.count({"num_experts"}, d.experts);
  if (!options.counts_only)
    s.top_k = experts_per_token(c, "num_experts_per_tok", d.top_k, s.experts);
  s.expert_ffn = c.count({"moe_intermediate_size"}, 512);
  s.shared_ffn = c.count({"shared_expert_intermediate_size"}, 512);
  s.normalize = c.flag("norm_topk_prob", true);
  return s;
}

Model build_next(const ModelConfig& c, const BuildOptions& options, const NextShape& s,
                 const std::vector<bool>& sparse) {
  const bool in_megatron = options.kernels == KernelSet::megatron;
  // With a cache by an engine's own kernels (load/rlhf.cpp), whose states nothing here counts.
  const bool in_engine = options.cached && options.state_kernels == StateKernels::fused;
  if (in_megatron)
    require_no_generation(c, options, kDeltaNets);
  else if (!in_engine || options.scalar_head)
    require_training(c, options, kDeltaNets);
  const std::vector<bool> full = attending_layers(c, s.layers);
  const auto kind = [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    return (sparse[at] ? kSparseLayer : 0) | (full[at] ? kAttendingLayer : 0);
  };
  ModelBuilder m(options);
  m.facts() = {.hidden = s.hidden,
               .layers = s.layers,
               .vocabulary = s.vocab,
               .max_positions = c.count_or_zero("max_position_embeddings", 32768),
               .attention_heads = s.attention.heads,
               .key_value_heads = s.attention.kv_heads};
  if (in_megatron)
    note_megatron_delta_nets(m);
  else
    note_state_kernels(m, kDeltaNets, "flash-linear-attention and causal_conv1d");
  note_router_loss(m, c);
  const DecoderStack stack{.hidden = s.hidden,
                           .vocabulary = s.vocab,
                           .tied = s.tied,
                           .rotary_dim = s.rotary_dim,
                           .norm = NormKind::gemma,
                           .runs = layer_runs(s.layers, kind),
                           .attention = options.attention,
                           .tables_of_batch = s.tables_of_batch || options.tables_of_batch};
  return build_decoder(
      m, stack, [&](ModelBuilder& b, int of) { return declare_next(b, s, of); },
      [&](Graph& g, const NextLayer& l, int of, const Positions& at, ValueId x) {
        const ValueId mixed = mix(g, m, l, s, at, x);
        const ValueId middle = g.map(OpKind::add, x, mixed);
        const ValueId n2 = normalize(g, NormKind::gemma, l.after, middle);
        return g.map(OpKind::add, middle, next_mlp(g, l, s, (of & kSparseLayer) != 0, n2));
      });
}

/// Of Qwen 3.5.
Model with_own_ring(Model model) {
  model.facts.own_ring = true;
  return model;
}

std::vector<bool> all_layers(std::int64_t layers, bool sparse) {
  return std::vector<bool>(static_cast<std::size_t>(layers), sparse);
}

}  // namespace

Model build_qwen3_next(const ModelConfig& c, const BuildOptions& options) {
  NextShape s = read_next(c, options,
                          {.hidden = 2048,
                           .ffn = 5632,
                           .layers = 48,
                           .heads = 16,
                           .kv_heads = 2,
                           .vocab = 151936,
                           .experts = 512,
                           .top_k = 10});
  s.delta.joined_projections = true;
  return build_next(c, options, s, read_sparse_layers(c, s.layers));
}

Model build_qwen3_5_text(const ModelConfig& c, const BuildOptions& options) {
  NextShape s = read_next(c, options,
                          {.hidden = 4096,
                           .ffn = 12288,
                           .layers = 32,
                           .heads = 16,
                           .kv_heads = 4,
                           .vocab = 248320,
                           .experts = 0,
                           .top_k = 0});
  s.tables_of_batch = true;  // positions of text, height and width for each sample
  return with_own_ring(build_next(c, options, s, all_layers(s.layers, false)));
}

Model build_qwen3_5_moe_text(const ModelConfig& c, const BuildOptions& options) {
  NextShape s = read_next(c, options,
                          {.hidden = 2048,
                           .ffn = 512,
                           .layers = 40,
                           .heads = 16,
                           .kv_heads = 2,
                           .vocab = 248320,
                           .experts = 256,
                           .top_k = 8});
  s.tables_of_batch = true;
  return with_own_ring(build_next(c, options, s, all_layers(s.layers, true)));
}

}  // namespace shardplan
